#!/bin/bash
# Fails if a program needs a symbol of a glibc later than 2.17, a library that is not glibc's, or is not stripped.
#
#   packaging/floor.sh PROGRAM
set -euo pipefail
floor=2.17
program=$1
wrong() { echo "WRONG: $program: $*" >&2; exit 1; }
symbols=$(readelf --wide --dyn-syms "$program" | grep -o '[^ ]*@GLIBC_[0-9.]*' | sort -u)
[[ -n $symbols ]] || wrong "no symbol of glibc is found: is it linked dynamically?"
above=$(while IFS=@ read -r symbol version; do
    version=${version##*GLIBC_}
    [[ $(printf '%s\n' "$version" "$floor" | sort -V | tail -1) == "$floor" ]] || echo "$symbol ($version)"
done <<< "$symbols")
[[ -z $above ]] || wrong "symbols above glibc $floor:" $above
needed=$(readelf --wide --dynamic "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in $needed; do
    case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*.so.*) ;;
        *) wrong "it needs $library" ;;
    esac
done
! readelf --wide --sections "$program" | grep -q ' \.symtab ' || wrong "it is not stripped"
highest=$(sed 's/.*GLIBC_//' <<< "$symbols" | sort -V | tail -1)
echo "$program: $(wc -l <<< "$symbols") symbols of glibc, none later than $highest; needs" $needed
