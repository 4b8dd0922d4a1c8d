// The smallest value of an image becomes 0, and the largest 65535. `ext.args` has options, as '--clip 0.1:99.9'.
process GPUIMG_NORMALIZE {
    tag "${meta.id}"
    label 'process_low'

    conda "${moduleDir}/environment.yml"

    input:
    tuple val(meta), path(image)

    output:
    tuple val(meta), path("${prefix}.tif"), emit: image
    path 'versions.yml', emit: versions, topic: versions

    when:
    task.ext.when == null || task.ext.when

    script:
    def args = task.ext.args ?: ''
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    RAYON_NUM_THREADS=${task.cpus} gpuimg normalize ${args} --no-progress -- ${image} ${prefix}.tif

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        gpuimg: \$(gpuimg --version | cut -d' ' -f2)
    END_VERSIONS
    """

    stub:
    prefix = task.ext.prefix ?: "${meta.id}"
    """
    touch ${prefix}.tif

    cat <<-END_VERSIONS > versions.yml
    "${task.process}":
        gpuimg: \$(gpuimg --version | cut -d' ' -f2)
    END_VERSIONS
    """
}
