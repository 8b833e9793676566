package access

import (
	"strings"

	"dedupledger/internal/setting"
)

// maxPassword bounds what is read of a password file, in bytes.
const maxPassword = 4096

// Password is a secret in the configuration, or the path of a file that holds
// it.
type Password struct {
	Inline setting.Secret
	File   string
}

// Read gives the password as it is now: a file is read again each time, so a
// new connection finds what was rotated. Line ends at the file's end are not
// part of it. No password is the empty secret. The error is a *FileError.
func (p Password) Read() (setting.Secret, error) {
	if p.File == "" {
		return p.Inline, nil
	}
	text, err := readFile("password file", p.File, maxPassword)
	if err != nil {
		return setting.Secret{}, err
	}
	password := strings.TrimRight(string(text), "\r\n")
	if password == "" {
		return setting.Secret{}, &FileError{"password file", p.File, errEmpty}
	}
	return setting.NewSecret(password), nil
}

// Reveal is Read for a client that takes a plain text.
func (p Password) Reveal() (string, error) {
	s, err := p.Read()
	return s.Reveal(), err
}
