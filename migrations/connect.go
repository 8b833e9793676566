package migrations

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ErrNoTLS says that the server answered a request for TLS with no.
var ErrNoTLS = errors.New("the server does not speak TLS")

// AskTLS lets connections that dial makes tell a server's no to TLS by ErrNoTLS.
func AskTLS(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &asked{Conn: conn}, nil
	}
}

// asked gives the server's no a type: the driver reads the answer to its
// SSLRequest, one byte, and makes a text of it.
type asked struct {
	net.Conn
	answered bool
}

// Read is the connection's, but for the first byte.
func (a *asked) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if !a.answered {
		a.answered = true
		if len(b) == 1 && n == 1 && b[0] == 'N' {
			return 0, ErrNoTLS
		}
	}
	return n, err //nolint:wrapcheck // a net.Conn's errors are its own
}

// attemptsError is a connection that was not made, on one line. The driver has a
// line for each address and way to secure it.
type attemptsError struct {
	text   string
	causes []error
}

func (e *attemptsError) Error() string   { return e.text }
func (e *attemptsError) Unwrap() []error { return e.causes }

// Brief says on one line, and with what counts alone, why a connection was not
// made; any other error it returns as it is. With sslmode=prefer, the default, a
// server without TLS is asked a second time without, and what it says then is the
// reason: its no to TLS is none.
func Brief(err error) error {
	refused, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok {
		return err
	}
	causes := []error{refused.Unwrap()}
	if joined, ok := refused.Unwrap().(interface{ Unwrap() []error }); ok {
		causes = slices.Clone(joined.Unwrap())
	}
	isNo := func(err error) bool { return errors.Is(err, ErrNoTLS) }
	if counts := slices.DeleteFunc(slices.Clone(causes), isNo); len(counts) > 0 {
		causes = counts
	}
	var said []string
	for _, c := range causes {
		if text := strings.ReplaceAll(c.Error(), "\n", "; "); !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	// What others have said around it stays.
	text := fmt.Sprintf("connecting as %s to database %s: %s", refused.Config.User, refused.Config.Database, strings.Join(said, "; "))
	return &attemptsError{strings.Replace(err.Error(), refused.Error(), text, 1), causes}
}
