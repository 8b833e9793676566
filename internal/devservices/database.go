package devservices

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"
)

// The product's roles. The product never creates them: an administrator does,
// and here this package stands for him.
const (
	RoleOwner = "dedup_owner" // migrates; owns the database
	RoleApp   = "dedup_app"   // the filter
	RoleRead  = "dedup_read"  // looks
)

// rolesLock serialises the making of roles, which belong to the whole server:
// tests of several programs make theirs at once.
const rolesLock = 0x6465647570 // "dedup"

// Database is a database of its own on some PostgreSQL server.
type Database struct {
	Name     string
	AdminURL string // superuser, or whoever DEDUP_TEST_POSTGRES names
	OwnerURL string
	AppURL   string
	ReadURL  string

	server string
}

// CreateDatabase makes the three roles where they are missing and a database
// owned by dedup_owner. Where the server's own URL has a password the roles get
// the same one.
func (s *Services) CreateDatabase(ctx context.Context, name string) (*Database, error) {
	return createDatabase(ctx, s.PostgresURL, name)
}

func createDatabase(ctx context.Context, server, name string) (*Database, error) {
	d, err := databaseOn(server, name)
	if err != nil {
		return nil, err
	}
	c, err := pgx.Connect(ctx, server)
	if err != nil {
		return nil, fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	// The advisory lock ends with the connection.
	defer c.Close(context.WithoutCancel(ctx))
	if err := createRoles(ctx, c); err != nil {
		return nil, err
	}
	// template0 has no visitors; template1 with one cannot be copied.
	q := "create database " + pgx.Identifier{name}.Sanitize() + " owner " + RoleOwner + " template template0"
	if _, err := c.Exec(ctx, q); err != nil {
		return nil, fmt.Errorf("creating database %s: %w", name, err)
	}
	return d, nil
}

func databaseOn(server, name string) (*Database, error) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		// Not %w: the parser's error quotes the URL, and with it a password.
		return nil, errors.New("PostgreSQL's address is not a postgres:// URL")
	}
	u.Path = "/" + name
	as := func(role string) string {
		v := *u
		v.User = url.User(role)
		if pw, ok := u.User.Password(); ok {
			v.User = url.UserPassword(role, pw)
		}
		return v.String()
	}
	return &Database{
		Name: name, AdminURL: u.String(), server: server,
		OwnerURL: as(RoleOwner), AppURL: as(RoleApp), ReadURL: as(RoleRead),
	}, nil
}

func createRoles(ctx context.Context, c *pgx.Conn) error {
	if _, err := c.Exec(ctx, "select pg_advisory_lock($1)", int64(rolesLock)); err != nil {
		return fmt.Errorf("waiting for others that make roles: %w", err)
	}
	for _, role := range []string{RoleOwner, RoleApp, RoleRead} {
		var there bool
		if err := c.QueryRow(ctx, "select exists (select from pg_roles where rolname = $1)", role).Scan(&there); err != nil {
			return fmt.Errorf("looking for role %s: %w", role, err)
		}
		if !there {
			if _, err := c.Exec(ctx, "create role "+role+" login"); err != nil {
				return fmt.Errorf("creating role %s: %w", role, err)
			}
		}
		if pw := c.Config().Password; pw != "" {
			literal := "'" + strings.ReplaceAll(pw, "'", "''") + "'"
			if _, err := c.Exec(ctx, "alter role "+role+" password "+literal); err != nil {
				return fmt.Errorf("setting the password of role %s: %w", role, err)
			}
		}
	}
	if _, err := c.Exec(ctx, "select pg_advisory_unlock($1)", int64(rolesLock)); err != nil {
		return fmt.Errorf("letting others make roles: %w", err)
	}
	return nil
}

// Drop removes the database; whoever is connected is cut off.
func (d *Database) Drop(ctx context.Context) error {
	c, err := pgx.Connect(ctx, d.server)
	if err != nil {
		return fmt.Errorf("connecting to PostgreSQL: %w", err)
	}
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, "drop database if exists "+pgx.Identifier{d.Name}.Sanitize()+" with (force)"); err != nil {
		return fmt.Errorf("dropping database %s: %w", d.Name, err)
	}
	return nil
}
