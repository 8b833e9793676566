package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// FileError says what is wrong with a file of a secret or a certificate. Files
// are checked when the configuration is read, so later it tells of one that is
// being replaced: the connection fails and is tried again.
type FileError struct {
	What string // "CA file", "certificate file", "key file", "password file"
	File string
	Err  error
}

func (e *FileError) Error() string {
	err := e.Err
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the file is named already
	}
	return fmt.Sprintf("%s %s: %v", e.What, e.File, err)
}

func (e *FileError) Unwrap() error { return e.Err }

// Temporary tells clients that another try may find the file whole.
func (e *FileError) Temporary() bool { return true }

var (
	errEmpty   = errors.New("empty")
	errNoFile  = errors.New("no regular file")
	errNoCerts = errors.New("holds no certificate: write PEM, -----BEGIN CERTIFICATE-----")
	errNoKey   = errors.New("holds no private key: write PEM, -----BEGIN PRIVATE KEY-----, without a passphrase")
)

// readFile reads a whole file of at most so many bytes.
func readFile(what, file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, &FileError{what, file, err}
	case !info.Mode().IsRegular():
		return nil, &FileError{what, file, errNoFile}
	case info.Size() > most:
		return nil, &FileError{what, file, fmt.Errorf("longer than %d bytes", most)}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, &FileError{what, file, err}
	}
	return text, nil
}
