# Two images of the same static program: no shell, no package manager, not
# root. The build context is what .dockerignore lets through.
#
#   make build && docker build --target binary -t dedup-ledger .   what was built outside
#   docker build -t dedup-ledger .                                 built inside (source, the default)
#
# Neither carries CA certificates: an image is kept for years and would go on
# trusting what it was built with. Name your CA in the configuration, or mount a
# bundle at /etc/ssl/certs/ca-certificates.crt.

# First, so that a builder which goes through the stages in order needs no
# golang image for it.
FROM scratch AS binary
COPY bin/dedup /dedup
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/dedup"]
CMD ["run"]

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN make build VERSION=$VERSION

FROM scratch AS source
COPY --from=build /src/bin/dedup /dedup
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/dedup"]
CMD ["run"]
