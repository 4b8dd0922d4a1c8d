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
# Debian's zsh looks elsewhere; its policy wants pages and changes compressed, and the licences in one file.
mkdir "$share/zsh/vendor-completions"
mv "$share"/zsh/site-functions/* "$share/zsh/vendor-completions/"
rmdir "$share/zsh/site-functions"
mv "$share/doc/gpuimg/CHANGELOG.md" "$share/doc/gpuimg/changelog"
gzip -9n "$share"/man/man1/*.1 "$share/doc/gpuimg/changelog"
mv "$share/doc/gpuimg/licenses.txt" "$share/doc/gpuimg/copyright"
rm "$share/doc/gpuimg/LICENSE"

# The libraries that the program is linked with are glibc's, of the version that packaging/floor.sh allows.
cat > "$root/DEBIAN/control" << CONTROL
Package: gpuimg
Version: $version
Architecture: $architecture
Maintainer: the gpuimg developers
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
