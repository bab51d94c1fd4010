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

// setter checks the values of a setting and stores them.
type setter func(values []string) error

// one stores a single value in to.
func one[T any](to *T, parse func(string) (T, error)) setter {
	return func(values []string) error {
		value, err := parse(values[0])
		if err == nil {
			*to = value
		}
		return err
	}
}

// each stores a list of values in to.
func each[T any](to *[]T, parse func(string) (T, error)) setter {
	return func(values []string) error {
		list := make([]T, len(values))
		for i, value := range values {
			var err error
			if list[i], err = parse(value); err != nil {
				return err
			}
		}
		*to = list
		return nil
	}
}

var errEmpty = errors.New("must not be empty")

func parseText(text string) (string, error) {
	switch {
	case text == "":
		return "", errEmpty
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", errors.New("must not contain control characters")
	}
	return text, nil
}

// parseWord takes a text without spaces: it becomes part of a scope, and scopes are separated by spaces.
func parseWord(text string) (string, error) {
	if strings.ContainsFunc(text, unicode.IsSpace) {
		return "", errors.New("must not contain spaces")
	}
	return parseText(text)
}

func parseScope(text string) (string, error) {
	scope, err := parseWord(text)
	if err != nil {
		err = fmt.Errorf("%q: %w", text, err)
	}
	return scope, err
}

// scopes stores a list of scopes that is not empty.
func scopes(to *[]string) setter {
	return func(values []string) error {
		if len(values) == 0 {
			return errEmpty
		}
		return each(to, parseScope)(values)
	}
}

func parseBool(text string) (bool, error) {
	on, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("%q is neither true nor false", text)
	}
	return on, err
}

func parsePath(text string) (string, error) {
	switch {
	case text == "":
		return "", errEmpty
	case strings.ContainsRune(text, 0):
		return "", errors.New("must not contain NUL")
	}
	return filepath.Abs(text)
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration such as 500ms, 2s or 1m30s", text)
	case d < time.Millisecond:
		return 0, errors.New("must be at least 1ms")
	}
	return d, nil
}

// parseDurationOrZero takes what parseDuration takes, and 0 with or without a unit.
func parseDurationOrZero(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d == 0 {
		return 0, nil
	}
	return parseDuration(text)
}

func oneOf(words ...string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", errors.New("must be one of " + strings.Join(words, ", "))
		}
		return text, nil
	}
}
