package setting

import (
	"errors"
	"strconv"
	"strings"
)

// Shape is the form in which a value was written.
type Shape uint8

// The shapes. Nothing is a key without a value.
const (
	Nothing Shape = iota
	Scalar
	List
	Map
	Nested // anything deeper than a list or map of scalars
)

// Written is a value as it was written, before anybody read it.
type Written struct {
	At    Place
	Shape Shape
	Text  string            // of a Scalar
	Items []string          // of a List
	Pairs map[string]string // of a Map
}

// Entry is one key of a section with its value.
type Entry struct {
	Name  string
	Value Written
}

// AsText is the scalar that was written.
func (w Written) AsText() (string, error) {
	switch w.Shape {
	case Scalar:
		return w.Text, nil
	case Nothing:
		return "", errors.New("no value; leave the key out for its default")
	default:
		return "", errors.New("a list or section where one value is needed")
	}
}

// AsBool reads true and false, and no other spelling.
func (w Written) AsBool() (bool, error) {
	text, err := w.AsText()
	if err == nil && text != "true" && text != "false" {
		err = errors.New("write true or false")
	}
	return text == "true", err
}

// AsList is the list that was written.
func (w Written) AsList() ([]string, error) {
	if w.Shape != List {
		return nil, errors.New("write a list: [a, b]")
	}
	return w.Items, nil
}

// AsMap is the map that was written; nil for an empty one.
func (w Written) AsMap() (map[string]string, error) {
	if w.Shape != Map {
		return nil, errors.New("write a map: {name: value}")
	}
	if len(w.Pairs) == 0 {
		return nil, nil //nolint:nilnil // an empty map
	}
	return w.Pairs, nil
}

// Quoted is the value for an error message: quoted, cut, "" where there is
// nothing to show.
func (w Written) Quoted() string {
	switch w.Shape {
	case Scalar:
		return quoted(w.Text)
	case List:
		items := make([]string, len(w.Items))
		for i, item := range w.Items {
			items[i] = quoted(item)
		}
		return cut("[" + strings.Join(items, ", ") + "]")
	default:
		return ""
	}
}

func quoted(text string) string { return strconv.Quote(cut(text)) }

// cut keeps an error a line: 80 bytes of a value tell which one it is.
func cut(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
