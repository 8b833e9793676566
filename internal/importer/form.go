package importer

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Names of the columns, and of the members of a JSON line.
const (
	columnScope  = "scope"
	columnKey    = "key"
	columnHash   = "sha256"
	columnFirst  = "first_seen"
	columnWindow = "window"
)

func columns() []string {
	return []string{columnScope, columnKey, columnHash, columnFirst, columnWindow}
}

// fields are the texts of a line; "" where it has none.
type fields struct {
	Scope  string `json:"scope"`
	Key    string `json:"key"`
	SHA256 string `json:"sha256"`
	First  string `json:"first_seen"`
	Window string `json:"window"`
}

func (f *fields) of(column string) *string {
	switch column {
	case columnScope:
		return &f.Scope
	case columnKey:
		return &f.Key
	case columnHash:
		return &f.SHA256
	case columnFirst:
		return &f.First
	case columnWindow:
		return &f.Window
	default:
		return nil
	}
}

// form reads the fields of a line. Its errors are for people.
type form interface {
	read(line []byte) (fields, error)
}

// formOf tells CSV from JSON lines by the first line. header says that the line is
// none of the data.
func formOf(first []byte) (f form, header bool, err error) {
	if bytes.HasPrefix(bytes.TrimSpace(first), []byte("{")) {
		return jsonLines{}, false, nil
	}
	f, err = newTable(first)
	return f, true, err
}

// jsonLines are objects, one in a line.
type jsonLines struct{}

func (jsonLines) read(line []byte) (f fields, err error) {
	if !utf8.Valid(line) {
		return f, errors.New("not UTF-8: write other octets of a key as %XX")
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("not an object of the texts %s: %w", strings.Join(columns(), ", "), err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return f, errors.New("more than one object: write each in a line of its own")
	}
	return f, nil
}

// table is CSV (RFC 4180) whose first line names the columns, in any order.
type table struct {
	feed    *feed
	csv     *csv.Reader
	columns []string
}

func newTable(header []byte) (*table, error) {
	t := &table{feed: &feed{}}
	t.csv = csv.NewReader(t.feed)
	t.csv.FieldsPerRecord = -1
	t.csv.ReuseRecord = true
	names, err := t.split(header)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case !slices.Contains(columns(), name):
			return nil, headerError(header, fmt.Sprintf("unknown column %q", clipped(name)))
		case slices.Contains(t.columns, name):
			return nil, headerError(header, fmt.Sprintf("column %s stands there twice", name))
		}
		t.columns = append(t.columns, name)
	}
	for _, name := range columns() {
		if name != columnWindow && !slices.Contains(t.columns, name) {
			return nil, headerError(header, "no column "+name)
		}
	}
	return t, nil
}

func headerError(header []byte, what string) error {
	hint := ""
	if !bytes.ContainsRune(header, ',') && bytes.ContainsAny(header, ";\t") {
		hint = ", with commas between them"
	}
	return fmt.Errorf("%s: the first line names the columns scope,key,sha256,first_seen and, if there is one, window, in any order%s; or write JSON lines", what, hint)
}

func (t *table) read(line []byte) (f fields, err error) {
	texts, err := t.split(line)
	if err != nil {
		return f, err
	}
	if len(texts) != len(t.columns) {
		return f, fmt.Errorf("%d columns; the first line names %d", len(texts), len(t.columns))
	}
	for i, name := range t.columns {
		*f.of(name) = texts[i]
	}
	return f, nil
}

// split gives a line to the CSV reader, alone: a quote that is not closed ends
// with it.
func (t *table) split(line []byte) ([]string, error) {
	t.feed.give(line)
	texts, err := t.csv.Read()
	if bad, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, fmt.Errorf("not CSV: character %d: %w", bad.Column, bad.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("not CSV: %w", err)
	}
	return texts, nil
}

// feed is a reader that is at its end behind each line.
type feed struct{ line, rest []byte }

func (f *feed) give(line []byte) {
	f.line = append(append(f.line[:0], line...), '\n')
	f.rest = f.line
}

func (f *feed) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

const shown = 60

// clipped is a text as it can stand in a message.
func clipped(text string) string {
	if len(text) <= shown {
		return text
	}
	return strings.ToValidUTF8(text[:shown], "") + "…"
}
