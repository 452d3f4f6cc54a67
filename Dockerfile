# lull and lull-queue, and nothing else: no shell, no libraries, not root. From a checkout of a release:
#
#   docker build -t lull .
#   docker run --rm -v "$PWD:/data:ro" lull lint /data/retry.yaml
FROM golang:1.26.11 AS build
COPY . /src
WORKDIR /src
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/lull ./cmd/lull/lull-queue && mkdir -m 1777 /out/tmp

FROM scratch
# for brokers with TLS
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/tmp /tmp
COPY --from=build /src/LICENSE /
COPY --from=build /out/lull /out/lull-queue /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/lull"]
