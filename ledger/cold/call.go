package cold

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// params are the arguments of one call, in binary format.
type params struct {
	values [][]byte
	oids   []uint32
}

func (p *params) add(oid uint32, value []byte) {
	p.values = append(p.values, value)
	p.oids = append(p.oids, oid)
}

func (p *params) array(oid uint32, a *array) { p.add(oid, a.bytes()) }

// sparse passes null for an array in which nothing is set.
func (p *params) sparse(oid uint32, a *array, set bool) {
	if !set {
		p.add(oid, nil)
		return
	}
	p.array(oid, a)
}

// function is a versioned SQL function that answers one row.
type function struct {
	name string
	sql  string
}

func newFunction(name, answer string, args int) function {
	marks := make([]string, args)
	for i := range marks {
		marks[i] = fmt.Sprintf("$%d", i+1)
	}
	return function{name: name, sql: "select " + answer + " from " + name + "(" + strings.Join(marks, ", ") + ")"}
}

// row reads the one row of an answer, column by column.
type row struct {
	types  *pgtype.Map
	result *pgconn.Result
	next   int
	err    error
}

func (r *row) scan(dst any) {
	if r.err != nil {
		return
	}
	field := r.result.FieldDescriptions[r.next]
	r.err = r.types.Scan(field.DataTypeOID, field.Format, r.result.Rows[0][r.next], dst)
	if r.err != nil {
		r.err = fmt.Errorf("reading column %s: %w", field.Name, r.err)
	}
	r.next++
}

// call runs f until it has an answer, or an error that another try on the same
// terms would not change. read is called with the answer.
func (l *Ledger) call(ctx context.Context, f function, p *params, read func(*row)) error {
	for try := 0; ; try++ {
		err := l.callOnce(ctx, f, p, read)
		if err == nil {
			return nil
		}
		if !wroteNothing(err) || try >= maxTries {
			return l.failed(ctx, "calling "+f.name, err)
		}
		l.log.DebugContext(ctx, "the ledger is contended, the call is made again", "function", f.name, "sqlstate", sqlstate(err), "try", try+1)
		select {
		case <-ctx.Done():
			return l.failed(ctx, "calling "+f.name, err)
		case <-time.After(backOff(try)):
		}
	}
}

// maxTries bounds what one call may spend on lock timeouts and deadlocks; then
// the caller hears ErrUnavailable, and asks again when it sees fit.
const maxTries = 5

func backOff(try int) time.Duration { return 10 * time.Millisecond << try }

func (l *Ledger) callOnce(ctx context.Context, f function, p *params, read func(*row)) error {
	return l.send(ctx, func(sent context.Context, conn *pgxpool.Conn) error {
		binary := []int16{pgtype.BinaryFormatCode}
		pg := conn.Conn().PgConn()
		var result *pgconn.Result
		if l.config.NoStatementCache {
			result = pg.ExecParams(sent, f.sql, p.values, p.oids, binary, binary).Read()
		} else {
			if _, err := conn.Conn().Prepare(sent, f.name, f.sql); err != nil {
				return fmt.Errorf("preparing: %w", err)
			}
			result = pg.ExecPrepared(sent, f.name, p.values, binary, binary).Read()
		}
		if result.Err != nil {
			return result.Err
		}
		if len(result.Rows) != 1 {
			return fmt.Errorf("%d rows instead of one", len(result.Rows))
		}
		r := &row{types: conn.Conn().TypeMap(), result: result}
		read(r)
		return r.err
	})
}

// send waits for a connection as long as ctx allows, but what is sent then
// waits for the server and its own deadline only: a cancelled statement may
// have committed all the same, and a wait for a synchronous standby that is
// cancelled reports a success that is none.
func (l *Ledger) send(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) error {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("waiting for a connection: %w", err)
	}
	defer conn.Release()
	limit := l.config.StatementTimeout + l.config.LockTimeout
	sent, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, fmt.Errorf("no answer within %s", limit))
	defer cancel()
	err = do(sent, conn)
	if err != nil && lostPrimary(err) {
		_ = conn.Conn().Close(sent)
	}
	return err
}
