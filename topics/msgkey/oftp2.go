package msgkey

import (
	"bytes"
	"encoding/base64"
)

// Octets of the command SFID (RFC 5024 §5.3.3), counted from 0. OFTP 1 (RFC
// 2204 §5.3.3) has the same length of fields with a shorter date and time, so
// what lies behind them lies at the same places.
const (
	sfidDSN    = 1
	sfidDate   = 30
	sfidTime   = 38
	sfidUser   = 48
	sfidDest   = 56
	sfidOrig   = 81
	sfidLength = 106

	sfidReserved  = 27
	oftp1SFIDDate = 36
	oftp1SFIDTime = 42

	// maxSFID is the most octets of the header: the command with the longest
	// description, in base64, and room for line breaks.
	maxSFID = 4096
)

// Digits of date and time: CCYYMMDD and HHMMSScccc, in OFTP 1 YYMMDD and HHMMSS.
const (
	oftp2Date, oftp2Time = 8, 10
	oftp1Date, oftp1Time = 6, 6
)

// virtualFile is what identifies an OFTP2 file.
type virtualFile struct{ orig, dest, dsn, date, time []byte }

// fromOFTP2 is the extractor "oftp2": oftp2:{ORIG}/{DEST}/{DSN}/{DATE}/{TIME}.
// RFC 5024 §1.5.2: "The Dataset Name, Date, and Time attributes are assigned by
// the Virtual File's originator and are used to uniquely identify a file". A
// record with any of its headers is OFTP2; the command SFID counts before
// fields of it.
func fromOFTP2(m *Message, _ payload, with *settings) (Found, Code, bool) {
	sfid, _ := m.header(HeaderOFTP2SFID)
	f, found := virtualFileOf(m)
	if sfid = trimBlanks(sfid); len(sfid) > 0 {
		var ok bool
		if f, ok = readSFID(sfid, with.OFTP1Dates); !ok {
			return Found{}, OFTP2BadSFID, true
		}
		found = true
	}
	if code := f.check(with.OFTP1Dates); code != "" {
		return Found{}, code, found
	}
	return newKey("oftp2", Field{string(f.orig)}, Field{string(f.dest)}, Field{string(f.dsn)},
		Field{string(f.date)}, Field{string(f.time)}), "", true
}

func virtualFileOf(m *Message) (f virtualFile, found bool) {
	for _, h := range [...]struct {
		name string
		to   *[]byte
	}{
		{HeaderOFTP2Orig, &f.orig},
		{HeaderOFTP2Dest, &f.dest},
		{HeaderOFTP2DSN, &f.dsn},
		{HeaderOFTP2Date, &f.date},
		{HeaderOFTP2Time, &f.time},
	} {
		value, ok := m.header(h.name)
		*h.to, found = rightTrimmed(value), found || ok
	}
	return f, found
}

// readSFID reads the command in base64.
func readSFID(encoded []byte, oftp1 bool) (virtualFile, bool) {
	if len(encoded) > maxSFID {
		return virtualFile{}, false
	}
	c, err := base64.StdEncoding.AppendDecode(nil, encoded)
	if err != nil || len(c) < sfidLength || c[0] != 'H' {
		return virtualFile{}, false
	}
	f := virtualFile{
		orig: rightTrimmed(c[sfidOrig:sfidLength]), dest: rightTrimmed(c[sfidDest:sfidOrig]), dsn: rightTrimmed(c[sfidDSN:sfidReserved]),
		date: rightTrimmed(c[sfidDate:sfidTime]), time: rightTrimmed(c[sfidTime:sfidUser]),
	}
	// OFTP 1 has reserved blanks where OFTP2's date begins.
	if oftp1 && len(bytes.Trim(c[sfidReserved:oftp1SFIDDate], " ")) == 0 {
		f.date, f.time = rightTrimmed(c[oftp1SFIDDate:oftp1SFIDTime]), rightTrimmed(c[oftp1SFIDTime:sfidUser])
	}
	return f, true
}

func (f virtualFile) check(oftp1 bool) Code {
	old := oftp1 && len(f.date) == oftp1Date
	switch {
	case len(f.dsn) == 0:
		return OFTP2MissingDSN
	case len(f.orig) == 0:
		return OFTP2MissingOrig
	case len(f.dest) == 0:
		return OFTP2MissingDest
	case !digits(f.date) || len(f.date) != oftp2Date && !old:
		return OFTP2BadDate
	case !digits(f.time) || len(f.time) != oftp2Time && (!old || len(f.time) != oftp1Time):
		return OFTP2BadTime
	}
	return ""
}

// digits says nothing of the calendar: a date identifies here, nobody counts
// with it.
func digits(v []byte) bool {
	for _, c := range v {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func rightTrimmed(field []byte) []byte { return bytes.TrimRight(field, " ") }
