package config

import (
	"errors"
	"net/url"

	"dedupledger/internal/setting"
)

// ConnString is the URL with the password of the file, as it is now, in it: for
// a command that connects once.
func (p Postgres) ConnString() (setting.Secret, error) {
	password, err := p.Password.Read()
	if err != nil || password.Empty() {
		return p.URL, err //nolint:wrapcheck // it names the file
	}
	u, err := url.Parse(p.URL.Reveal())
	if err != nil {
		return setting.Secret{}, errors.New("postgres.url is no URL")
	}
	u.User = url.UserPassword(u.User.Username(), password.Reveal())
	return setting.NewSecret(u.String()), nil
}
