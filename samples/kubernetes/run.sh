#!/bin/bash
# One range for a whole data set, on 8 pods: count, merge, normalize, each a Job after the one before.
#
#   podman build -t REGISTRY/gpuimg . && podman push REGISTRY/gpuimg    # and name it in the three Jobs
#   kubectl apply -f samples/kubernetes/volume.yaml                     # once; put the images into its /in
#   samples/kubernetes/run.sh [KUBECTL_OPTION…]                         # as --namespace imaging
#
# Ends with 0 if all is done; with 1 if an image could not be read (the rest is done, and
# `kubectl logs -l app.kubernetes.io/name=gpuimg` names it) or a step failed. Run it again as it is: what is
# done and unchanged is skipped. For more pods, change completions, parallelism and JOB_COMPLETIONS in both Jobs.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
options=("$@")
kubectl() { command kubectl ${options[@]+"${options[@]}"} "$@"; }

# Starts a step and waits for its end: 0 complete, 1 failed. No pod of an earlier run may go on beside it.
step() {
    kubectl delete job "gpuimg-$1" --ignore-not-found --cascade=foreground > /dev/null || exit 1
    kubectl apply -f "$here/$1.yaml" > /dev/null || exit 1
    local ends
    while true; do
        # If the server does not answer, kubectl says so, and is asked again.
        ends=$(kubectl get job "gpuimg-$1" -o jsonpath='{.status.conditions[?(@.status=="True")].type}') || ends=
        case " $ends " in
            *" Complete "*) return 0 ;;
            *" Failed "*) echo "gpuimg-$1 has failed: kubectl logs -l job-name=gpuimg-$1" >&2; return 1 ;;
        esac
        sleep "${POLL:-5}"
    done
}

# Each run has a folder of its own, so that no part of an earlier one is taken for one of this.
kubectl create configmap gpuimg-run --from-literal=run="$(date -u +%Y%m%dT%H%M%SZ)-$$" --dry-run=client -o yaml |
    kubectl apply -f - > /dev/null
status=0
# A pod that met a bad image has failed, and has counted the others. Whether all parts are there, merge sees.
step count || status=1
step merge || exit 1
step normalize || status=1
exit "$status"
