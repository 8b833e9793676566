package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"dedupledger/internal/setting"
)

// maxPassword bounds what is read of a password file.
const maxPassword = 4096

// Password is a secret in the configuration, or the path of a file that holds
// it.
type Password struct {
	Inline setting.Secret
	File   string
}

// Read gives the password as it is now: a file is read again each time, so a
// new connection finds what was rotated. Line ends at the file's end are not
// part of it. No password is the empty secret.
func (p Password) Read() (setting.Secret, error) {
	if p.File == "" {
		return p.Inline, nil
	}
	info, err := os.Stat(p.File)
	if err != nil {
		return setting.Secret{}, fmt.Errorf("password file: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxPassword {
		return setting.Secret{}, fmt.Errorf("password file %s: no file of at most %d bytes", p.File, maxPassword)
	}
	text, err := os.ReadFile(p.File)
	if err != nil {
		return setting.Secret{}, fmt.Errorf("password file: %w", err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return setting.Secret{}, errors.New("password file " + p.File + ": empty")
	}
	return setting.NewSecret(password), nil
}

// ConnString is the URL with the password of the file, as it is now, in it: for
// a command that connects once.
func (p Postgres) ConnString() (setting.Secret, error) {
	password, err := p.Password.Read()
	if err != nil || password.Empty() {
		return p.URL, err
	}
	u, err := url.Parse(p.URL.Reveal())
	if err != nil {
		return setting.Secret{}, errors.New("postgres.url is no URL")
	}
	u.User = url.UserPassword(u.User.Username(), password.Reveal())
	return setting.NewSecret(u.String()), nil
}
