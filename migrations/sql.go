package migrations

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed sql/*.sql
var files embed.FS

// after is run at the end of every Up, also when no migration was left: roles
// may have been made since, and months pass.
//
//go:embed after.sql
var after string

// table is where applied versions are written down.
const table = "dedup_migration"

// Version is the newest migration: the schema this program works with.
func Version() int64 {
	all, err := sources()
	if err != nil || len(all) == 0 {
		return 0
	}
	return all[len(all)-1].Version
}

// Source is one migration as it is embedded.
type Source struct {
	Version int64
	Name    string // file name
	SQL     string
}

// sources are in order of their names, which is that of their numbers.
func sources() ([]Source, error) {
	entries, err := fs.ReadDir(files, "sql")
	if err != nil {
		return nil, fmt.Errorf("reading the embedded migrations: %w", err)
	}
	all := make([]Source, 0, len(entries))
	for _, e := range entries {
		number, _, _ := strings.Cut(e.Name(), "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s has no number: %w", e.Name(), err)
		}
		text, err := fs.ReadFile(files, path.Join("sql", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading migration %s: %w", e.Name(), err)
		}
		all = append(all, Source{Version: version, Name: e.Name(), SQL: string(text)})
	}
	return all, nil
}
