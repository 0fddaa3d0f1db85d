# Builds a root folder in which a command can do no harm, and starts the fuzzer there.
# Runs inside new user, mount, network and process namespaces. Arguments: an empty folder, the fuzzer, its arguments.
set -eu
root=$1 fuzzer=$2
shift 2
mount -t tmpfs -o mode=755 tmpfs "$root"
mkdir "$root/usr" "$root/etc" "$root/proc" "$root/dev" "$root/tmp" "$root/worlds"
for name in bin sbin lib lib32 lib64; do
  if [ -L "/$name" ]; then
    cp -P "/$name" "$root/$name"
  elif [ -d "/$name" ]; then
    mkdir "$root/$name"
    mount --bind "/$name" "$root/$name"
    mount -o remount,bind,ro "$root/$name"
  fi
done
mount --rbind /usr "$root/usr"
mount -o remount,bind,ro "$root/usr"
printf 'root:x:0:0:root:/nowhere:/bin/bash\n' > "$root/etc/passwd"
mount -t proc proc "$root/proc"
for name in null zero random urandom; do
  : > "$root/dev/$name"
  mount --bind "/dev/$name" "$root/dev/$name"
done
ln -s /proc/self/fd "$root/dev/fd"
ln -s /proc/self/fd/0 "$root/dev/stdin"
ln -s /proc/self/fd/1 "$root/dev/stdout"
ln -s /proc/self/fd/2 "$root/dev/stderr"
: > "$root/fuzzer"
mount --bind "$fuzzer" "$root/fuzzer"
mount -o remount,bind,ro "$root/fuzzer"
mount -t tmpfs -o size=1g tmpfs "$root/worlds"
mount -t tmpfs -o size=256m tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
# Files of at most 8 MB, a minute of processor time for one process.
ulimit -f 16384 -c 0
exec chroot "$root" setpriv --bounding-set=-all --inh-caps=-all --ambient-caps=-all --no-new-privs \
  env -i PATH=/usr/bin:/bin HOME=/nowhere OSTLER_FUZZ_CONFINED=1 /fuzzer "$@"
