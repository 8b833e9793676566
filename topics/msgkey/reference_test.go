package msgkey_test

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dedupledger/topics/msgkey"
)

// The reference extractors below are written straight from the specification,
// with copies and slices of everything, to be compared with the real ones on
// fuzzed input. They give the key, or "" where there is none.

const (
	refLeading  = " \t\r\n\x00"
	refTrailing = " \t\r\n\x00\x1A"
)

var refSyntaxID = regexp.MustCompile(`^[A-Z]{3}[A-Z0-9]$`)

func refClean(value string) string {
	return strings.TrimLeft(strings.TrimPrefix(value, "\xEF\xBB\xBF"), refLeading)
}

// refSegment is a segment as elements of components.
type refSegment [][]string

func (s refSegment) tag() string { return s[0][0] }

func (s refSegment) element(i int) msgkey.Field {
	if i >= len(s) {
		return nil
	}
	f := msgkey.Field{}
	for _, c := range s[i] {
		f = append(f, strings.Trim(c, " "))
	}
	return withoutEmptyEnd(f)
}

func refEDIFACT(value string) string {
	data := refClean(value)
	if !strings.HasPrefix(data, "UNA") && !strings.HasPrefix(data, "UNB") {
		return ""
	}
	service, given := []byte(":+?'"), false
	if strings.HasPrefix(data, "UNA") {
		if len(data) < 9 {
			return ""
		}
		service, given = []byte{data[3], data[4], data[6], data[8]}, true
		data = strings.TrimLeft(data[9:], refLeading)
	}
	if !given && strings.HasPrefix(strings.NewReplacer("\r", "", "\n", "").Replace(data), "UNB\x1D") {
		service = []byte{0x1F, 0x1D, ' ', 0x1C}
	}
	if !refService(service) {
		return ""
	}
	for _, c := range "\r\n" {
		if !bytes.ContainsRune(service, c) {
			data = strings.ReplaceAll(data, string(c), "")
		}
	}
	segments, complete := refTokens(data, service)
	return refInterchange(segments, complete)
}

func refService(s []byte) bool {
	for i, c := range s {
		if i == 2 && c == ' ' {
			continue
		}
		if c == ' ' || regexp.MustCompile(`^[A-Za-z0-9]$`).Match([]byte{c}) || slices.Contains(s[i+1:], c) {
			return false
		}
	}
	return true
}

// refTokens splits into segments; complete is false if something but blanks
// follows the last terminator.
func refTokens(data string, service []byte) (segments []refSegment, complete bool) {
	var value []byte
	segment, rest := refSegment{nil}, 0
	endComponent := func() {
		segment[len(segment)-1] = append(segment[len(segment)-1], string(value))
		value = nil
	}
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case c == service[2] && c != ' ':
			if len(segment) == 1 && segment[0] == nil { // tags hold no releases
				value = append(value, c)
			}
			if i++; i < len(data) {
				value = append(value, data[i])
			}
		case c == service[0]:
			endComponent()
		case c == service[1]:
			endComponent()
			segment = append(segment, nil)
		case c == service[3]:
			endComponent()
			segments = append(segments, segment)
			segment, rest = refSegment{nil}, i+1
		default:
			value = append(value, c)
		}
	}
	return segments, strings.Trim(data[rest:], refTrailing) == ""
}

func refInterchange(segments []refSegment, complete bool) string {
	for i := range segments {
		if i > 0 {
			segments[i][0][0] = strings.TrimLeft(segments[i][0][0], " \t\r\n")
		}
	}
	blank := func(s refSegment, blanks string) bool {
		return len(s) == 1 && len(s[0]) == 1 && strings.Trim(s[0][0], blanks) == ""
	}
	if len(segments) == 0 || segments[0].tag() != "UNB" {
		return ""
	}
	for len(segments) > 0 && blank(segments[len(segments)-1], refTrailing) {
		segments = segments[:len(segments)-1]
	}
	// Empty segments are terminators repeated.
	segments = slices.DeleteFunc(segments, func(s refSegment) bool { return blank(s, "") })
	if !complete || len(segments) < 2 {
		return ""
	}
	unb, unz := segments[0], segments[len(segments)-1]
	if unb.tag() != "UNB" || len(unb[0]) != 1 || unz.tag() != "UNZ" || len(unz[0]) != 1 {
		return ""
	}
	for _, s := range segments[1 : len(segments)-1] {
		if t := s.tag()[:min(3, len(s.tag()))]; t == "UNB" || t == "UNA" || t == "UIB" || t == "UNZ" {
			return ""
		}
	}
	syntax, sender, recipient, ref := unb.element(1), unb.element(2), unb.element(3), unb.element(5)
	if len(syntax) == 0 || !refSyntaxID.MatchString(syntax[0]) ||
		len(sender) == 0 || sender[0] == "" || len(recipient) == 0 || recipient[0] == "" ||
		len(ref) == 0 || len(strings.Join(ref, "")) > 14 || !slices.Equal(ref, unz.element(2)) {
		return ""
	}
	fields := []msgkey.Field{sender, recipient, ref}
	if len(unb) > 11 && len(unb[11]) == 1 && strings.Trim(unb[11][0], " ") == "1" {
		fields = append(fields, msgkey.Field{"T"})
	}
	return msgkey.Encode("edifact", fields...)
}

var refISA = []int{3, 6, 17, 20, 31, 34, 50, 53, 69, 76, 81, 83, 89, 99, 101, 103}

func refX12(value string) string {
	data := refClean(value)
	if !strings.HasPrefix(data, "ISA") {
		return ""
	}
	if strings.ContainsAny(data[:min(len(data), 105)], "\r\n") {
		data = strings.NewReplacer("\r", "", "\n", "").Replace(data)
	}
	if len(data) < 106 {
		return ""
	}
	element := data[3:4]
	var places []int
	for i := 3; i <= 103; i++ {
		if data[i:i+1] == element {
			places = append(places, i)
		}
	}
	_, size := utf8.DecodeRuneInString(data[105:])
	terminator := data[105 : 105+size]
	alnum := regexp.MustCompile(`^[A-Za-z0-9]`)
	e := strings.Split(data[:104], element)
	if !slices.Equal(places, refISA) || element == " " || alnum.MatchString(element) || alnum.MatchString(terminator) ||
		terminator == element || terminator == data[104:105] || data[104:105] == element ||
		!regexp.MustCompile(`^[0-9]{9}$`).MatchString(e[13]) {
		return ""
	}
	trim := func(i int) string { return strings.Trim(e[i], " ") }
	if trim(6) == "" || trim(8) == "" || !refTrailer(data[105+size:], element, terminator, e[13]) {
		return ""
	}
	fields := []msgkey.Field{{trim(5), trim(6)}, {trim(7), trim(8)}, {e[13]}}
	if e[15] != "P" {
		fields = append(fields, msgkey.Field{e[15]})
	}
	return msgkey.Encode("x12", fields...)
}

func refTrailer(data, element, terminator, control string) bool {
	binary := regexp.MustCompile(`(?s)^(?:BIN` + regexp.QuoteMeta(element) + `|BDS` + regexp.QuoteMeta(element) +
		`(.*?)` + regexp.QuoteMeta(element) + `)([0-9]+)` + regexp.QuoteMeta(element))
	for {
		data = strings.TrimLeft(data, " \t\r\n")
		if data == "" || strings.HasPrefix(data, "ISA") {
			return false
		}
		skip := 0
		if m := binary.FindStringSubmatch(data); m != nil && !strings.Contains(m[1], terminator) {
			n, err := strconv.Atoi(m[2])
			if err != nil || n > len(data)-len(m[0]) {
				return false
			}
			skip = len(m[0]) + n
		}
		segment, rest, ended := strings.Cut(data[skip:], terminator)
		if strings.HasPrefix(segment, "IEA"+element) && skip == 0 {
			if !ended {
				segment = strings.TrimRight(segment, refTrailing)
			}
			for _, c := range terminator + refTrailing {
				if c != utf8.RuneError {
					rest = strings.ReplaceAll(rest, string(c), "")
				}
			}
			rest = strings.ReplaceAll(rest, terminator, "")
			iea := strings.Split(segment, element)
			return rest == "" && len(iea) > 2 && strings.Trim(iea[2], " ") == control
		}
		if !ended {
			return false
		}
		data = rest
	}
}
