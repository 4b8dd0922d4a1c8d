// One range for a whole data set, in parts that Nextflow (24.10 or later) spreads over cores or over a cluster:
//
//   nextflow run samples/workflows/main.nf --input in --output out --parts 8
//
// gpuimg must be in PATH, or be named by `--gpuimg`; `-process.executor slurm` sends the parts to a cluster whose nodes see
// both folders. An image that cannot be read does not hold the others up: its part is counted without it, and its task
// of the last step fails when its other images are done; the run ends with status 1, by the line in nextflow.config.
// A run that was stopped goes on where it was with `-resume`.
params.input = null
params.output = null
params.parts = 8
params.gpuimg = 'gpuimg'
// Cores of a task; gpuimg takes them all.
params.cores = 2

// A word for the shell, whatever is in it.
def quoted(value) {
    return "'" + value.toString().replace("'", "'\\''") + "'"
}

// Status 1 with a histogram: an image could not be read, was named, and is left out of it.
process COUNT {
    cpus params.cores

    input:
    val part
    path images, stageAs: 'images'

    output:
    path "${part}.hist"

    script:
    """
    ${quoted(params.gpuimg)} histogram images --shard ${part}/${params.parts} -j ${task.cpus} -o ${part}.hist --overwrite --keep-going \
        || { [ \$? = 1 ] && [ -s ${part}.hist ]; }
    """
}

process MERGE {
    input:
    path parts

    output:
    path 'all.hist'

    script:
    """
    ${quoted(params.gpuimg)} merge ${parts} -o all.hist --overwrite
    """
}

// Straight into the folder of the results: gpuimg gives a file its name only when it is whole, and knows with --resume
// what is done.
process NORMALIZE {
    cpus params.cores
    errorStrategy 'ignore'

    input:
    val part
    path images, stageAs: 'images'
    path range
    val results

    script:
    """
    ${quoted(params.gpuimg)} normalize images ${quoted(results)} --range-from ${range} \
        --shard ${part}/${params.parts} -j ${task.cpus} --resume
    """
}

workflow {
    if (!params.input || !params.output) {
        error('--input and --output name the folders of the images and of the results')
    }
    def parts = channel.of(1..(params.parts as int))
    def images = file(params.input, checkIfExists: true, glob: false)
    def results = file(params.output, glob: false).toAbsolutePath()

    COUNT(parts, images)
    MERGE(COUNT.out.collect())
    NORMALIZE(parts, images, MERGE.out, results)
}
