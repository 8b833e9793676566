package importer

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line in bytes: a key has at most 4096, each octet of which a
// line may write as six (\u0000), and the rest is short.
const maxLine = 64 << 10

var (
	errTooLong = fmt.Errorf("longer than %d bytes: is a line break missing?", maxLine)
	errGzip    = errors.New("it is compressed: unpack it first, as in gzip -dc FILE | dedup import -")
	errUTF16   = errors.New("it is UTF-16: write UTF-8, as in iconv -f UTF-16 -t UTF-8 FILE | dedup import -")
)

// source gives the lines of a file without their ends. A line is one record: no
// quoted text goes over several, so what is wrong with one harms no other.
type source struct {
	in    *bufio.Reader
	line  int   // number of the last one, from 1
	bytes int64 // read so far
}

func newSource(in io.Reader) (*source, error) {
	s := &source{in: bufio.NewReaderSize(in, maxLine)}
	head, err := s.in.Peek(3)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("reading: %w", err)
	}
	switch {
	case bytes.Equal(head, []byte("\xef\xbb\xbf")):
		_, _ = s.in.Discard(3) // they are there
		s.bytes = 3
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return nil, errGzip
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		return nil, errUTF16
	}
	return s, nil
}

// next is the next line that is not blank. It is good until the call after. The
// error is errTooLong, io.EOF or one of reading.
func (s *source) next() ([]byte, error) {
	for {
		line, err := s.in.ReadSlice('\n')
		s.bytes += int64(len(line))
		if len(line) == 0 && err != nil {
			return nil, readError(err)
		}
		s.line++
		if errors.Is(err, bufio.ErrBufferFull) {
			return nil, s.skip()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, readError(err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(bytes.TrimSpace(line)) > 0 {
			return line, nil
		}
	}
}

// skip passes over the rest of a line that is too long.
func (s *source) skip() error {
	for {
		rest, err := s.in.ReadSlice('\n')
		s.bytes += int64(len(rest))
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil, errors.Is(err, io.EOF):
			return errTooLong
		default:
			return readError(err)
		}
	}
}

func readError(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return fmt.Errorf("reading: %w", err)
}
