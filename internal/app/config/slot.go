package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

const (
	slotAuto    = "auto"
	slotOrdinal = "$ordinal"
	mostSlot    = 9999
)

// Slot is the number of a process in its group, where it is known.
type Slot struct {
	Auto   bool // the lowest that is free
	Number int
}

// slot is auto, a number or $ordinal. The host's name is not looked at: what is
// checked here may run elsewhere.
func slot(path string, into *string) key {
	return text(path, into, slotAuto, func(s string) error {
		if s == slotAuto || s == slotOrdinal {
			return nil
		}
		if _, err := slotNumber(s); err != nil {
			return errors.New("write auto, $ordinal (the number that ends the host name) or a number, 0 to 9999")
		}
		return nil
	})
}

func slotNumber(digits string) (int, error) {
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > mostSlot || strings.TrimLeft(digits, "0123456789") != "" {
		return 0, fmt.Errorf("%q is no number from 0 to %d", digits, mostSlot)
	}
	return n, nil
}

var ordinal = regexp.MustCompile(`[0-9]+$`)

// SlotOn is the slot on a host of this name.
func (p Processor) SlotOn(host string) (Slot, error) {
	switch p.Slot {
	case slotAuto:
		return Slot{Auto: true}, nil
	case slotOrdinal:
		name, _, _ := strings.Cut(host, ".") // without the domain
		n, err := slotNumber(ordinal.FindString(name))
		if err != nil {
			return Slot{}, fmt.Errorf("processor.slot is %s, but the host name %q does not end in a number from 0 to %d, as dedup-7 does: write auto or a number", slotOrdinal, host, mostSlot)
		}
		return Slot{Number: n}, nil
	default:
		n, err := slotNumber(p.Slot)
		return Slot{Number: n}, err
	}
}
