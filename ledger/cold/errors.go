package cold

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"dedupledger/ledger"
	"dedupledger/migrations"
)

// SQLSTATEs (PostgreSQL, appendix A) and our own, raised by the functions of
// package migrations.
const (
	codeWrongIsolation       = "DL001"
	codeClaimLost            = "DL002"
	codeFeatureNotSupported  = "0A000"
	codeNotNullViolation     = "23502"
	codeCheckViolation       = "23514"
	codeSerializationFailure = "40001"
	codeDeadlock             = "40P01"
	codeLockNotAvailable     = "55P03"
	codeNotPermitted         = "42501"
	codeCanceled             = "57014" // statement_timeout
	codeReadOnly             = "25006"
	codeInRecovery           = "55000"
	codeInvalidPassword      = "28P01"
	codeNoDatabase           = "3D000"
	codeNoSchema             = "3F000"
)

// classify wraps err with what was attempted and with the ledger's error that
// tells the caller what to do.
func classify(attempt string, err error) error {
	err = migrations.Brief(err)
	if why := LoginRefused(err); why != "" {
		return fmt.Errorf("%s: %w: %s: %w", attempt, kind(err), why, err)
	}
	return fmt.Errorf("%s: %w: %w", attempt, kind(err), err)
}

// atStart is classify for a start: a refused login or a right that is missing is
// then a mistake to be told at once, while later it may be a password under
// rotation, or a right that comes back.
func atStart(attempt string, err error) error {
	err = migrations.Brief(err)
	if why := LoginRefused(err); why != "" {
		return fmt.Errorf("%s: %w: %s: %w", attempt, ledger.ErrSchema, why, err)
	}
	if sqlstate(err) == codeNotPermitted {
		return fmt.Errorf("%s: %w: %w", attempt, ledger.ErrSchema, err)
	}
	return classify(attempt, err)
}

// Refused is a sentence for a start that PostgreSQL refuses, with the repair, and
// the server's own words; "" where it is no refusal.
func Refused(err error) (why string, said error) {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return "", nil
	}
	if refused.Code == codeNoDatabase {
		return "PostgreSQL has no such database; correct its name in postgres.url, or make it (create database ... owner dedup_owner)", refused
	}
	return LoginRefused(err), refused
}

// LoginRefused is a sentence for a login that PostgreSQL refuses, or "". It says
// no more than the server does: whether the user is there is a secret.
func LoginRefused(err error) string {
	switch code := sqlstate(err); {
	case code == codeInvalidPassword:
		return "PostgreSQL refuses the login; check the user in postgres.url and postgres.password_file (and, with a client certificate, that its common name is the user)"
	case class(code) == "28":
		return "PostgreSQL refuses the login before it looks at a password; pg_hba.conf must admit this user, database and address with the sslmode of postgres.url, and a client certificate that it demands goes into sslcert and sslkey there"
	}
	return ""
}

func kind(err error) error {
	code := sqlstate(err)
	switch code {
	case codeClaimLost:
		return ledger.ErrClaimLost
	case codeCheckViolation:
		if !namesConstraint(err) {
			return ledger.ErrUnavailable
		}
		return ledger.ErrRejected
	case codeNotNullViolation:
		return ledger.ErrRejected
	case codeNotPermitted:
		return ledger.ErrDenied
	case codeWrongIsolation, codeFeatureNotSupported, codeNoDatabase, codeNoSchema:
		return ledger.ErrSchema
	}
	switch class(code) {
	case "22":
		return ledger.ErrRejected
	case "42":
		return ledger.ErrSchema
	}
	return ledger.ErrUnavailable
}

// namesConstraint tells a row that a check does not let pass from one that no
// partition takes, which has the same SQLSTATE: a month that is there and not
// attached. That is no fault of the record's, or of any; as a verdict it would
// send all records to dead-letter.
func namesConstraint(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.ConstraintName != "" && refused.TableName != "dedup_position"
}

// wroteNothing tells the refusals after which the same call may be made again
// on the same terms: the server has answered, and has rolled back.
func wroteNothing(err error) bool {
	switch sqlstate(err) {
	case codeLockNotAvailable, codeDeadlock, codeSerializationFailure:
		return true
	}
	return false
}

// lostPrimary tells that the connection is to a server that cannot write: a
// primary that became a standby. Kept in the pool, it would go on failing.
func lostPrimary(err error) bool {
	switch sqlstate(err) {
	case codeReadOnly, codeInRecovery:
		return true
	}
	return class(sqlstate(err)) == "57" && sqlstate(err) != codeCanceled // shutting down
}

func sqlstate(err error) string {
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return refused.Code
	}
	return ""
}

func class(code string) string {
	if len(code) != 5 {
		return ""
	}
	return code[:2]
}
