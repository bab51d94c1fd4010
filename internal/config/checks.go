package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

var errEmpty = errors.New("must not be empty")

// isText, like the other functions named is…, returns a setter, which checks a value and stores it in to.
func isText(to *string) func([]string) error {
	return func(values []string) error {
		if values[0] == "" {
			return errEmpty
		}
		if strings.ContainsFunc(values[0], unicode.IsControl) {
			return errors.New("must not contain control characters")
		}
		*to = values[0]
		return nil
	}
}

func isTexts(to *[]string) func([]string) error {
	return func(values []string) error {
		*to = nil
		for _, value := range values {
			var text string
			if err := isText(&text)([]string{value}); err != nil {
				return err
			}
			*to = append(*to, text)
		}
		return nil
	}
}

// isWord takes a text without spaces: it becomes part of a scope, and scopes are separated by spaces.
func isWord(to *string) func([]string) error {
	return func(values []string) error {
		if strings.ContainsFunc(values[0], unicode.IsSpace) {
			return errors.New("must not contain spaces")
		}
		return isText(to)(values)
	}
}

// isScopes takes a list of scopes.
func isScopes(to *[]string) func([]string) error {
	return func(values []string) error {
		if len(values) == 0 {
			return errEmpty
		}
		for _, value := range values {
			var scope string
			if err := isWord(&scope)([]string{value}); err != nil {
				return fmt.Errorf("%q: %w", value, err)
			}
		}
		*to = values
		return nil
	}
}

func isBool(to *bool) func([]string) error {
	return func(values []string) error {
		on, err := strconv.ParseBool(values[0])
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", values[0])
		}
		*to = on
		return nil
	}
}

func isPath(to *string) func([]string) error {
	return func(values []string) (err error) {
		if values[0] == "" {
			return errEmpty
		}
		if strings.ContainsRune(values[0], 0) {
			return errors.New("must not contain NUL")
		}
		*to, err = filepath.Abs(values[0])
		return err
	}
}

func isDuration(to *time.Duration) func([]string) error {
	return func(values []string) error {
		d, err := time.ParseDuration(values[0])
		if err != nil {
			return fmt.Errorf("%q is not a duration such as 500ms, 2s or 1m30s", values[0])
		}
		if d < time.Millisecond {
			return errors.New("must be at least 1ms")
		}
		*to = d
		return nil
	}
}

// isDurationOrZero takes what isDuration takes, and 0 with or without a unit.
func isDurationOrZero(to *time.Duration) func([]string) error {
	return func(values []string) error {
		if d, err := time.ParseDuration(values[0]); err == nil && d == 0 {
			*to = 0
			return nil
		}
		return isDuration(to)(values)
	}
}

func isOneOf(to *string, words ...string) func([]string) error {
	return func(values []string) error {
		if !slices.Contains(words, values[0]) {
			return errors.New("must be one of " + strings.Join(words, ", "))
		}
		*to = values[0]
		return nil
	}
}
