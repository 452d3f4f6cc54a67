#!/usr/bin/env bash
# Installs the clients that lull torture is shown with, into the folder that is named (outside
# of the repository), and writes the list that lull torture --adapters reads to standard output:
#
#     lab/clients/install.sh /tmp/clients >/tmp/clients.list
#     go run ./cmd/lull torture --adapters /tmp/clients.list --keep cards.json
#
# The adapters add nothing to the clients: see "A client of your own" in docs/torture.md.
# It needs Go, npm, a JDK and a Debian-like system, on which it may install packages.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
to=$(mkdir -p "$1" && cd "$1" && pwd)

# Debian's versions are what its release has; each line of the list names them.
debian=(curl wget python3-requests python3-httpx python3-tenacity python3-backoff python3-botocore ruby ruby-faraday ruby-excon
  php-cli php-curl php-guzzlehttp-guzzle libwww-perl libio-socket-ssl-perl libokhttp-java libhttpclient-java)
if ! dpkg-query -W "${debian[@]}" >/dev/null 2>&1; then
  apt-get update -q >&2
  DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${debian[@]}" >&2
fi
version() { dpkg-query -W -f '${Version}' "$1"; }
list() { printf '%s\t%s\t%s\n' "$1" "$2" "$3"; }

go -C "$here/go" build -tags large -o "$to/go-clients" . >&2
go_version() { GOWORK=off go -C "$here/go" list -m -f '{{.Version}}' "$1"; }
list net/http "$(go env GOVERSION)" "$to/go-clients net-http"
list go-retryablehttp "$(go_version github.com/hashicorp/go-retryablehttp)" "$to/go-clients go-retryablehttp"
list failsafe-go "$(go_version github.com/failsafe-go/failsafe-go)" "$to/go-clients failsafe-go"
list cenkalti-backoff "$(go_version github.com/cenkalti/backoff/v7)" "$to/go-clients cenkalti-backoff"
list avast-retry-go "$(go_version github.com/avast/retry-go/v5)" "$to/go-clients avast-retry-go"
list resty "$(go_version resty.dev/v3)" "$to/go-clients resty"
list heimdall "$(go_version github.com/gojek/heimdall/v7)" "$to/go-clients heimdall"
list go-github "$(go_version github.com/google/go-github/v92)" "$to/go-clients go-github"
list aws-sdk-go-s3 "$(go_version github.com/aws/aws-sdk-go-v2/service/s3)" "$to/go-clients aws-sdk-go-s3"

GOWORK=off go -C "$here/.." build -modfile=clients/_newer/newer.mod -o "$to/go-newer-clients" ./clients/_newer >&2
newer_version() { GOWORK=off go -C "$here/.." list -modfile=clients/_newer/newer.mod -m -f '{{.Version}}' "$1"; }
list client-go "$(newer_version k8s.io/client-go)" "$to/go-newer-clients client-go"
list google-api-go "$(newer_version google.golang.org/api)" "$to/go-newer-clients google-api-go"

mkdir -p "$to/js"
cp "$here"/js/*.mjs "$here/js/package.json" "$to/js"
(cd "$to/js" && npm install --no-package-lock --ignore-scripts --no-audit --no-fund >&2)
js() { list "$1" "$(cd "$to/js" && node -p "require('./node_modules/$2/package.json').version")" "node $to/js/adapter.mjs $1"; }
list fetch "$(node --version)" "node $to/js/adapter.mjs fetch"
for name in axios axios-retry retry-axios got ky ofetch p-retry cockatiel fetch-retry gaxios superagent make-fetch-happen openai stripe; do js "$name" "$name"; done
js undici-retry-agent undici
js octokit-retry @octokit/plugin-retry
js aws-sdk-s3 @aws-sdk/client-s3
js anthropic @anthropic-ai/sdk

python() { list "$1" "$(version "$2")" "/usr/bin/python3 $here/python/adapter.py $1"; }
python requests python3-requests
python requests-urllib3-retry python3-urllib3
python requests-tenacity python3-tenacity
python requests-backoff python3-backoff
python httpx python3-httpx
python httpx-retries python3-httpx
python urllib3 python3-urllib3
python botocore-standard python3-botocore
python botocore-legacy python3-botocore

ruby() { list "ruby-$1" "$(version "$2")" "/usr/bin/ruby $here/ruby/adapter.rb $1"; }
ruby net-http ruby
ruby faraday ruby-faraday
ruby faraday-retry ruby-faraday
ruby excon ruby-excon

one='{url} {method} {body-file} {timeout-ms} {key}'
for name in guzzle guzzle-retry; do list "$name" "$(version php-guzzlehttp-guzzle)" "php $here/php/adapter.php $name $one"; done
list perl-http-tiny "$(/usr/bin/perl -MHTTP::Tiny -e 'print HTTP::Tiny->VERSION')" "/usr/bin/perl $here/perl/adapter.pl http-tiny $one"
list perl-lwp "$(version libwww-perl)" "/usr/bin/perl $here/perl/adapter.pl lwp $one"
list curl "$(version curl)" "sh $here/curl.sh $one"
list curl-once "$(version curl)" "env CURL_RETRY=0 sh $here/curl.sh $one"
list wget "$(version wget)" "sh $here/wget.sh $one"

jars=/usr/share/java/okhttp.jar:/usr/share/java/okio.jar:/usr/share/java/httpclient.jar:/usr/share/java/httpcore.jar:/usr/share/java/commons-logging.jar
javac -cp "$jars" -d "$to/classes" "$here/java/Adapter.java" >&2
java="java -XX:TieredStopAtLevel=1 -cp $to/classes:$jars Adapter"
list jdk-httpclient "$(java --version | head -n 1 | cut -d ' ' -f 2)" "$java jdk-httpclient"
list okhttp "$(version libokhttp-java)" "$java okhttp"
list apache-httpclient "$(version libhttpclient-java)" "$java apache-httpclient"
