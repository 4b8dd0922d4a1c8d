#!/bin/bash
# A Debian package of what packaging/build.sh has laid out for a prefix.
#
#   packaging/deb.sh TREE VERSION ARCHITECTURE FOLDER
set -euo pipefail
cd "$(dirname "$0")/.."
tree=$1 version=$2 architecture=$3 dist=$4
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir "$root/DEBIAN"
cp -r "$tree" "$root/usr"
share=$root/usr/share
# Debian's zsh looks elsewhere, and its policy wants pages and lists of changes compressed.
mkdir "$share/zsh/vendor-completions"
mv "$share"/zsh/site-functions/* "$share/zsh/vendor-completions/"
rmdir "$share/zsh/site-functions"
doc=$share/doc/gpuimg
# The licences of libraries keep their full texts, as those licences want; Debian's policy wants none of Apache's in its own file.
{
    cat "$doc/LICENSE"
    printf '\nThe licences of the libraries that are compiled in are in licenses.txt, beside this file.\n'
} > "$doc/copyright"
rm "$doc"/{LICENSE,INSTALL.md}
maintainer="gpuimg developers <developers@gpuimg.example>"
cat > "$doc/changelog" << CHANGES
gpuimg ($version) unstable; urgency=medium

  * CHANGELOG.md.gz tells what changed.

 -- $maintainer  $(date -uRd "@$SOURCE_DATE_EPOCH")
CHANGES
gzip -9n "$share"/man/man1/*.1 "$doc"/{changelog,CHANGELOG.md}
mkdir -p "$share/lintian/overrides"
cat > "$share/lintian/overrides/gpuimg" << OVERRIDES
# The crates that Cargo.lock names, in Rust: Debian's libraries cannot stand in for them.
gpuimg: embedded-library
OVERRIDES

# The libraries that the program is linked with are glibc's, of the version that packaging/floor.sh allows.
cat > "$root/DEBIAN/control" << CONTROL
Package: gpuimg
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Depends: libc6 (>= 2.17)
Suggests: libcuda1
Section: graphics
Priority: optional
Description: normalize, rotate and sum 16-bit images on a GPU or on the CPU
 Scales the range of values of PNG, TIFF, DICOM and other images, rotates,
 mirrors and sums them, on an NVIDIA GPU or on the CPU, with bit-identical,
 correctly rounded results from both.
 .
 CUDA is not required. The NVIDIA driver is used if it is installed.
CONTROL
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum > DEBIAN/md5sums)
find "$root" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$dist/gpuimg_${version}_$architecture.deb" > /dev/null
