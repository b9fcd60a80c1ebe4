#!/bin/sh
# Puts the agent on a machine: run as root on an instance that becomes an image, or on bare metal. It can be repeated.
# It writes no secret and no config: on EC2 the launch template's user data does that at boot, on bare metal a person.
set -eu

usage() {
  cat <<'TEXT'
usage: provision.sh --agent FILE [--image | --bare-metal] [--root DIR]

  --agent FILE   the drover-agent program (cargo build --release -p drover-agent)
  --image        this machine becomes an image: drop the identity of an agent that ran here
  --bare-metal   no cloud metadata here: leave its guard out
  --root DIR     install below DIR instead of /; nothing is started
TEXT
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
agent='' root='' guard=yes image=no
while [ $# -gt 0 ]; do
  case "$1" in
  --agent) agent=${2:?--agent needs a file}; shift 2 ;;
  --root) root=${2:?--root needs a directory}; shift 2 ;;
  --image) image=yes; shift ;;
  --bare-metal) guard=no; shift ;;
  --help | -h) usage; exit 0 ;;
  *) echo "provision.sh: unknown argument $1" >&2; usage >&2; exit 2 ;;
  esac
done
if [ -z "$agent" ] || [ ! -x "$agent" ]; then
  echo "provision.sh: --agent ${agent:-is missing}: not an executable file" >&2
  exit 2
fi
if [ -z "$root" ] && [ "$(id -u)" != 0 ]; then
  echo "provision.sh: run it as root, or give --root DIR" >&2
  exit 2
fi
if [ "$image" = yes ] && [ "$guard" = no ]; then
  echo "provision.sh: --image and --bare-metal exclude each other" >&2
  exit 2
fi
if [ -n "$root" ] && [ ! -d "$root" ]; then
  echo "provision.sh: --root $root is no directory" >&2
  exit 2
fi

install -D -m 0755 "$agent" "$root/usr/bin/drover-agent"
install -D -m 0644 "$here/../agent/drover-agent.example.toml" "$root/usr/share/doc/drover-agent/drover-agent.example.toml"
install -d -m 0755 "$root/etc/drover-agent" "$root/etc/drover-agent/hooks.d"
install -D -m 0644 "$here/../deploy/systemd/drover-agent.service" "$root/usr/lib/systemd/system/drover-agent.service"
units=drover-agent.service
if [ "$guard" = yes ]; then
  install -D -m 0755 "$here/metadata-guard" "$root/usr/lib/drover-agent/metadata-guard"
  install -D -m 0644 "$here/../deploy/systemd/drover-metadata-guard.service" \
    "$root/usr/lib/systemd/system/drover-metadata-guard.service"
  units="$units drover-metadata-guard.service"
fi
# An image must not carry an identity: two machines would be one node. A machine that is a node keeps its own.
if [ "$image" = yes ]; then
  rm -rf "$root/var/lib/drover-agent"
fi

if [ -n "$root" ]; then
  # shellcheck disable=SC2086
  systemctl --root="$root" enable $units
else
  systemctl daemon-reload
  # shellcheck disable=SC2086
  systemctl enable $units
fi
echo "drover-agent is installed; it starts at the next boot, once /etc/drover-agent/drover-agent.toml is there"
