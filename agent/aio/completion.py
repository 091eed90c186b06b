"""aio completion: the table of the commands as scripts for shells. The scripts hold everything that they complete, and ask no server."""
from __future__ import annotations

import shlex
import sys

from .table import GLOBAL, GROUPS, Arg

# In both shells: from the words before the cursor, `path` becomes "group name", and after the call of _aio_offers `offers` holds words
# and `files` is 1 where files of this side fit.
SHARED = """\
_aio_path() {{
  local word skip=
  path=
  for word in "$@"; do
    if [[ -n $skip ]]; then skip=; continue; fi
    case $word in
      {valued}) skip=1 ;;
      -*) ;;
      *)
        case $path in
          '') path=$word ;;
          {groups}) path="$path $word" ;;
        esac ;;
    esac
  done
}}

_aio_offers() {{  # PREVIOUS CURRENT
  offers= files=
  case "$path:$1" in
{values}
    {unknown}) return ;;
  esac
  case $path in
    '') offers='{tops}' ;;
{paths}
  esac
  [[ $2 == -* ]] || offers=$(_aio_words "$offers")
}}

# Without the options, which are offered after a -.
_aio_words() {{
  local all=$1 word out=
  while [[ -n $all ]]; do
    word=${{all%% *}}
    [[ $all == *' '* ]] && all=${{all#* }} || all=
    [[ $word == -* ]] || out="$out $word"
  done
  printf '%s' "${{out# }}"
}}
"""
BASH = """
_aio() {
  local path offers files word glued current=${COMP_WORDS[COMP_CWORD]}
  local -a before=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do  # bash takes an address or NAME=VALUE apart
    if [[ ${#before[@]} -gt 0 && ( -n $glued || $word == [:=]* ) ]]; then
      before[${#before[@]}-1]+=$word
    else
      before+=("$word")
    fi
    [[ $word == *[:=] ]] && glued=1 || glued=
  done
  _aio_path "${before[@]}"
  _aio_offers "${COMP_WORDS[COMP_CWORD-1]}" "$current"
  local IFS=$' \\t\\n'
  COMPREPLY=($(compgen -W "$offers" -- "$current"))
  if [[ -n $files && $current != -* ]]; then
    compopt -o filenames 2>/dev/null  # since bash 4
    IFS=$'\\n'
    COMPREPLY+=($(compgen -f -- "$current"))
  fi
}
complete -F _aio aio
"""
ZSH = """
_aio() {
  local path offers files
  _aio_path "${(@)words[2,CURRENT-1]}"
  _aio_offers "${words[CURRENT-1]}" "${words[CURRENT]}"
  [[ -z $offers ]] || compadd -- ${=offers}
  [[ -z $files || ${words[CURRENT]} == -* ]] || _files
}
if [[ ${funcstack[1]-} == _aio ]]; then _aio "$@"; else compdef _aio aio; fi
"""


def takes_value(arg: Arg) -> bool:
    return arg.option and arg.type is not bool


def flags(args) -> list:
    return [name for arg in args if arg.option for name in arg.names.split()]


def script() -> str:
    from .commands import COMMANDS

    every = [(command, arg) for command in COMMANDS for arg in (*command.args, *GLOBAL)]
    valued = sorted({name for _, arg in every if takes_value(arg) for name in arg.names.split()})
    groups = [group for group in GROUPS if any(command.group == group for command in COMMANDS)]
    alone = [command.name for command in COMMANDS if not command.group]
    common = [*flags(GLOBAL), "--help"]
    paths, values = [], []
    for group in groups:
        names = " ".join([*(command.name for command in COMMANDS if command.group == group), *common])
        paths.append(f"    {group}) offers='{names}' ;;")
    for command in COMMANDS:
        positional = [arg for arg in command.args if not arg.option]
        offers = " ".join([*(choice for arg in positional for choice in arg.choices), *flags(command.args), *common])
        files = " files=1" if any(arg.files for arg in positional) else ""
        paths.append(f"    {shlex.quote(command.path)}) offers={shlex.quote(offers)}{files} ;;")
        values += [value(shlex.quote(command.path + ":" + name), arg) for arg in command.args if takes_value(arg)
                   for name in arg.names.split() if arg.choices or arg.files]
    values += [value("*:" + arg.names, arg) for arg in GLOBAL if takes_value(arg) and arg.files]
    return SHARED.format(valued="|".join(valued), groups="|".join(groups), values="\n".join(values), unknown="|".join("*:" + name for name in valued),
                         tops=" ".join([*alone, *groups, *common]), paths="\n".join(paths))


def value(pattern: str, arg: Arg) -> str:
    return f"    {pattern}) {'files=1' if arg.files else 'offers=' + shlex.quote(' '.join(arg.choices))}; return ;;"


def bash(_client, _options, _out) -> int:
    sys.stdout.write("# Completion of aio for bash.\n" + script() + BASH)
    return 0


def zsh(_client, _options, _out) -> int:
    sys.stdout.write("#compdef aio\n" + script() + ZSH)
    return 0
