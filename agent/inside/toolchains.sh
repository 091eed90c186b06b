# Which interpreters and compilers a session of the domain `code` sees: kind, name or version, and path.
PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
for p in "$(command -v python3)" /opt/python/*/bin/python3; do
  [ -x "$p" ] && v=$("$p" -I -c 'import platform; print(platform.python_version())') && printf 'python\t%s\t%s\n' "$v" "$p"
done
for p in "$(command -v node)" /opt/nodejs/*/bin/node; do
  [ -x "$p" ] && v=$("$p" --version) && printf 'node\t%s\t%s\n' "${v#v}" "$p"
done
for t in bash gcc g++ go javac rustc perl php ruby lua Rscript julia; do
  p=$(command -v "$t") && printf 'tool\t%s\t%s\n' "$t" "$p"
done
exit 0
