# Two images from one file, from a checkout of a release. Neither has a shell or libraries, and neither runs as root.
# lull and lull-queue:
#
#   docker build -t lull .
#   docker run --rm -v "$PWD:/data:ro" lull lint /data/retry.yaml
#
# lull-proxy, which reads /etc/lull/proxy.yaml; its health check expects "admin: {listen: 127.0.0.1:9900}" there (docs/deploy
# has manifests for it):
#
#   docker build -t lull-proxy --target proxy .
#   docker run --rm -v "$PWD:/etc/lull:ro" --network host lull-proxy
FROM golang:1.26.11 AS build
COPY . /src
WORKDIR /src
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./cmd/lull ./cmd/lull/lull-queue && mkdir -m 1777 /out/tmp

FROM golang:1.26.11 AS build-proxy
COPY . /src
WORKDIR /src
RUN CGO_ENABLED=0 go build -trimpath -ldflags=-s -o /out/ ./cmd/lull/lull-proxy

FROM scratch AS proxy
COPY --from=build-proxy /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-proxy /src/LICENSE /
COPY --from=build-proxy /out/lull-proxy /usr/local/bin/
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --start-interval=1s CMD ["/usr/local/bin/lull-proxy", "--probe", "http://127.0.0.1:9900/ready"]
ENTRYPOINT ["/usr/local/bin/lull-proxy"]
CMD ["/etc/lull/proxy.yaml"]

FROM scratch
# for brokers with TLS
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/tmp /tmp
COPY --from=build /src/LICENSE /
COPY --from=build /out/lull /out/lull-queue /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/lull"]
