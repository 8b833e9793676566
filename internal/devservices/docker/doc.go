// Package docker is the engine of package devservices: containers by
// testcontainers-go, which finds the Docker engine as the docker command does
// (DOCKER_HOST, the current context, the usual sockets) and pulls images.
//
// Its own variables hold here, too: TESTCONTAINERS_HOST_OVERRIDE where published
// ports are not reached at the usual address, TESTCONTAINERS_RYUK_DISABLED where
// its reaper's image cannot be had.
package docker
