#!/usr/bin/env bash
# Installs the proxies that lull proxy is compared with: Debian's HAProxy and nginx, which are not started, and Caddy into the
# folder that is named (outside of the repository):
#
#     lab/proxies/install.sh /tmp/proxies
#     go run ./lab/proxies --programs /tmp/proxies outage load
#
# Python's requests, Node and PHP are installed by lab/clients/install.sh. There is no Envoy: neither Debian nor the Go module proxy has it.
set -euo pipefail
to=$(mkdir -p "$1" && cd "$1" && pwd)

debian=(haproxy nginx-light)
if ! dpkg-query -W "${debian[@]}" >/dev/null 2>&1; then
  policy=/usr/sbin/policy-rc.d mine=''
  if [[ ! -e $policy ]]; then
    mine=yes
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  apt-get update -q
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${debian[@]}"
  if [[ -n $mine ]]; then rm -f "$policy"; fi
fi
GOBIN=$to go install github.com/caddyserver/caddy/v2/cmd/caddy@v2.11.9
