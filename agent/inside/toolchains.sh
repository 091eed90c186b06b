# Lists the system's interpreters and compilers: kind, name or version, and path. PATH has only the system's directories (ask_system).
say() {  # A version is digits and dots on one line; a program that prints anything else does not count.
  case $2 in '' | *[!0-9.]*) ;; *) printf '%s\t%s\t%s\n' "$1" "$2" "$3" ;; esac
}
for p in "$(command -v python3)" /opt/python/*/bin/python3; do
  [ -x "$p" ] && v=$("$p" -I -c 'import platform; print(platform.python_version())') && say python "$v" "$p"
done
for p in "$(command -v node)" /opt/nodejs/*/bin/node; do
  [ -x "$p" ] && v=$("$p" --version) && say node "${v#v}" "$p"
done
for t in bash gcc g++ go java javac rustc pytest tsx esbuild perl php ruby lua Rscript julia; do
  p=$(command -v "$t") && printf 'tool\t%s\t%s\n' "$t" "$p"
done
exit 0
