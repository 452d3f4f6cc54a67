#!/bin/sh
# curl with --retry 3, or as often as CURL_RETRY says: curl.sh URL METHOD BODY-FILE TIMEOUT-MS KEY
url=$1 method=$2 file=$3 timeout=$4 key=$5
set -- -sS --fail --retry "${CURL_RETRY:-3}" -o /dev/null --noproxy '*'
case $method in HEAD) set -- "$@" --head ;; *) set -- "$@" -X "$method" ;; esac
if [ -n "$file" ]; then set -- "$@" --data-binary "@$file"; fi
if [ "$timeout" -gt 0 ]; then set -- "$@" --max-time "$((timeout / 1000))" --retry-max-time "$((timeout / 1000))"; fi
if [ -n "$key" ]; then set -- "$@" -H "Idempotency-Key: $key"; fi
exec curl "$@" "$url"
