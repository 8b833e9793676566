package importer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"dedupledger/internal/setting"
	"dedupledger/ledger"
)

// chunk is what is entered at once: of at most ledger.MaxChunk lines read.
type chunk struct {
	lines  []ledger.ImportLine
	at     []int // numbers of the lines
	bad    setting.Problems
	read   int
	opaque int
	bytes  int64 // of the file, up to here
	err    error // the file cannot be read further
}

// reader makes chunks of a file.
type reader struct {
	terms  *Terms
	source *source
	form   form
	first  []byte // a first line that is data
}

// open looks at the beginning of a file. One without a line is no error.
func open(in io.Reader, terms *Terms) (*reader, error) {
	r := &reader{terms: terms}
	var err error
	if r.source, err = newSource(in); err != nil {
		return nil, fmt.Errorf("%s: %w", terms.Name, err)
	}
	first, err := r.source.next()
	if errors.Is(err, io.EOF) {
		r.form = jsonLines{}
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", terms.Name, r.source.line, err)
	}
	form, header, err := formOf(first)
	if err != nil {
		return nil, fmt.Errorf("%s:%d: %w", terms.Name, r.source.line, err)
	}
	if r.form = form; !header {
		r.first = append([]byte{}, first...)
	}
	return r, nil
}

// chunks reads to the end of the file, or to ctx's.
func (r *reader) chunks(ctx context.Context, to chan<- *chunk) {
	defer close(to)
	for {
		c := r.chunk()
		select {
		case to <- c:
		case <-ctx.Done():
			return
		}
		if c.err != nil || c.read < ledger.MaxChunk {
			return
		}
	}
}

// chunk is short at the end of the file only.
func (r *reader) chunk() *chunk {
	c := &chunk{lines: make([]ledger.ImportLine, 0, ledger.MaxChunk), at: make([]int, 0, ledger.MaxChunk)}
	for c.read < ledger.MaxChunk {
		line, err := r.next()
		switch {
		case errors.Is(err, io.EOF):
			c.bytes = r.source.bytes
			return c
		case errors.Is(err, errTooLong):
			c.read++
			c.bad = append(c.bad, r.problem(&fault{why: err.Error()}))
			continue
		case err != nil:
			c.err = fmt.Errorf("%s: %w", r.terms.Name, err)
			return c
		}
		c.read++
		r.take(c, line)
	}
	c.bytes = r.source.bytes
	return c
}

func (r *reader) next() ([]byte, error) {
	if line := r.first; line != nil {
		r.first = nil
		return line, nil
	}
	return r.source.next()
}

func (r *reader) take(c *chunk, line []byte) {
	f, err := r.form.read(line)
	if err != nil {
		c.bad = append(c.bad, r.problem(&fault{why: err.Error()}))
		return
	}
	l, opaque, bad := r.terms.line(&f)
	if bad != nil {
		c.bad = append(c.bad, r.problem(bad))
		return
	}
	if opaque {
		c.opaque++
	}
	c.lines = append(c.lines, l)
	c.at = append(c.at, r.source.line)
}

func (r *reader) problem(f *fault) setting.Problem { return problem(r.terms.Name, r.source.line, f) }

// problem is a line's fault as compilers tell theirs.
func problem(name string, line int, f *fault) setting.Problem {
	p := setting.Problem{At: setting.Place{Name: name, Line: line}, Path: f.column, Why: f.why}
	if f.value != "" {
		p.Value = strconv.Quote(clipped(f.value))
	}
	return p
}
