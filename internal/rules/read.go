package rules

import (
	"strings"
	"time"

	"dedupledger/internal/setting"
)

// Read takes one entry of `flows` as it was written. path is its name in
// errors, flows[4]. A setting that cannot be read is left unset and reported;
// what the values may be is checked by New.
func Read(path string, at setting.Place, entries []setting.Entry) (Rule, setting.Problems) {
	r := Rule{Path: path, At: at}
	into := r.readers()
	var problems setting.Problems
	for _, e := range entries {
		read, known := into[e.Name]
		why := "unknown key; known are " + strings.Join(ruleKeys(), ", ")
		if known {
			why = reason(read(e.Value))
		}
		if why == "" {
			continue
		}
		problems = append(problems, setting.Problem{
			At: e.Value.At, Path: path + "." + e.Name, Value: e.Value.Quoted(), Why: why,
		})
	}
	return r, problems
}

func ruleKeys() []string {
	return []string{
		"match", "key", "mode", "entry", "extractors", "aliases", "namespace", "hash", "window", "ttl_max",
		"lenient", "with_date", "durability", "payload",
		"sellers", "scheme", "cxml_order", "message_level", "json_pointers", "file_pattern", "oftp1",
	}
}

type reader func(setting.Written) error

func (r *Rule) readers() map[string]reader {
	return map[string]reader{
		"match":      into(&r.Match, setting.Written.AsText),
		"key":        into(&r.Key, setting.Written.AsText),
		"mode":       into(&r.Mode, setting.Written.AsText),
		"entry":      into(&r.Entry, setting.Written.AsText),
		"extractors": into(&r.Extractors, setting.Written.AsList),
		"aliases":    into(&r.Aliases, setting.Written.AsList),
		"namespace":  into(&r.Namespace, setting.Written.AsText),
		"hash":       into(&r.Hash, setting.Written.AsText),
		"window":     into(&r.Window, asWindow),
		"ttl_max":    into(&r.TTLMax, asWindow),
		"lenient":    into(&r.Lenient, setting.Written.AsBool),
		"with_date":  into(&r.WithDate, setting.Written.AsBool),
		"durability": into(&r.Durability, setting.Written.AsText),
		"payload":    into(&r.Payload, setting.Written.AsText),

		"sellers":       into(&r.Sellers, setting.Written.AsList),
		"scheme":        into(&r.Scheme, setting.Written.AsText),
		"cxml_order":    into(&r.CXMLOrder, setting.Written.AsBool),
		"message_level": into(&r.MessageLevel, setting.Written.AsText),
		"json_pointers": into(&r.JSONPointers, setting.Written.AsList),
		"file_pattern":  into(&r.FilePattern, setting.Written.AsText),
		"oftp1":         into(&r.OFTP1, setting.Written.AsBool),
	}
}

func into[T any](s *Setting[T], read func(setting.Written) (T, error)) reader {
	return func(w setting.Written) error {
		value, err := read(w)
		if err == nil {
			*s = Setting[T]{Value: value, Set: true, At: w.At}
		}
		return err
	}
}

func asWindow(w setting.Written) (time.Duration, error) {
	text, err := w.AsText()
	if err != nil {
		return 0, err
	}
	return setting.DurationWithin(text, MinWindow, MaxWindow)
}

func reason(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
