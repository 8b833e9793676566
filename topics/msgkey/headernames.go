package msgkey

import "bytes"

// Record headers that extractors read, beside HeaderName. Gateways call them as
// they like: topics.header_names renames them. The names of OFTP2 and SFTP
// follow no standard.
const (
	HeaderMessageID      = "message-id"
	HeaderAS2From        = "as2-from"
	HeaderContentType    = "content-type"
	HeaderIdempotencyKey = "idempotency-key"
	HeaderClientID       = "x-client-id"
	HeaderCEVersion      = "ce_specversion"
	HeaderCESource       = "ce_source"
	HeaderCEID           = "ce_id"
	HeaderOFTP2DSN       = "oftp2-dsn"
	HeaderOFTP2Date      = "oftp2-date"
	HeaderOFTP2Time      = "oftp2-time"
	HeaderOFTP2Orig      = "oftp2-orig"
	HeaderOFTP2Dest      = "oftp2-dest"
	HeaderOFTP2SFID      = "oftp2-sfid"
	HeaderSFTPAccount    = "sftp-account"
	HeaderSFTPFilename   = "sftp-filename"
)

// HeaderNames lists the headers that extractors read beside HeaderName, in
// lower case.
func HeaderNames() []string {
	return []string{
		HeaderMessageID, HeaderAS2From, HeaderContentType, HeaderIdempotencyKey, HeaderClientID,
		HeaderCEVersion, HeaderCESource, HeaderCEID,
		HeaderOFTP2DSN, HeaderOFTP2Date, HeaderOFTP2Time, HeaderOFTP2Orig, HeaderOFTP2Dest, HeaderOFTP2SFID,
		HeaderSFTPAccount, HeaderSFTPFilename,
	}
}

const outerBlanks = " \t\r\n"

func trimBlanks(value []byte) []byte { return bytes.Trim(value, outerBlanks) }

// headerText unfolds a header field's value (RFC 5322 §2.2.3) and trims it: a
// line break with the blanks behind it is one space.
func headerText(value []byte) []byte {
	value = trimBlanks(value)
	var out []byte
	from := 0
	for i := 0; i < len(value); i++ {
		end := fold(value, i)
		if end == i {
			continue
		}
		out = append(append(out, value[from:i]...), ' ')
		from, i = end, end-1
	}
	if from == 0 {
		return value
	}
	return append(out, value[from:]...)
}

// fold is where the fold that begins at i ends, or i.
func fold(value []byte, i int) int {
	end := i
	if value[end] == '\r' {
		end++
	}
	if end+1 >= len(value) || value[end] != '\n' || value[end+1] != ' ' && value[end+1] != '\t' {
		return i
	}
	for end++; end < len(value) && (value[end] == ' ' || value[end] == '\t'); {
		end++
	}
	return end
}
