package setting

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

var sizeUnits = []struct {
	unit  string
	scale int64
}{
	{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}, {"B", 1},
}

// Size reads a number of bytes: 65536 64KiB 10MiB 1GiB.
func Size(text string) (int64, error) {
	number, unit := splitNumber(text)
	n, err := strconv.ParseInt(number, 10, 64)
	for _, u := range sizeUnits {
		if err == nil && u.unit == unit && n <= math.MaxInt64/u.scale {
			return n * u.scale, nil
		}
	}
	return 0, errors.New("not a size; write bytes as 65536, 64KiB, 10MiB or 1GiB")
}

// SizeWithin is Size with bounds, which its error names.
func SizeWithin(text string, least, most int64) (int64, error) {
	n, err := Size(text)
	if err != nil {
		return 0, fmt.Errorf("%w (%s to %s)", err, FormatSize(least), FormatSize(most))
	}
	if n < least || n > most {
		return 0, fmt.Errorf("out of range; write %s to %s", FormatSize(least), FormatSize(most))
	}
	return n, nil
}

// FormatSize writes n as Size reads it, in the largest unit without a rest.
func FormatSize(n int64) string {
	for _, u := range sizeUnits {
		if n >= u.scale && n%u.scale == 0 {
			return strconv.FormatInt(n/u.scale, 10) + u.unit
		}
	}
	return strconv.FormatInt(n, 10)
}
