#!/bin/sh
# wget with its options for retries: wget.sh URL METHOD BODY-FILE TIMEOUT-MS KEY
url=$1 method=$2 file=$3 timeout=$4 key=$5
set -- -nv -O /dev/null --no-proxy --ca-certificate="$LULL_TORTURE_CA" --tries=4 --retry-connrefused --retry-on-http-error=429,500,502,503,504
set -- "$@" --method="$method"
if [ -n "$file" ]; then set -- "$@" --body-file="$file"; fi
if [ "$timeout" -gt 0 ]; then set -- "$@" --timeout="$((timeout / 1000))"; fi
if [ -n "$key" ]; then set -- "$@" --header="Idempotency-Key: $key"; fi
exec wget "$@" "$url"
