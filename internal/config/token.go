package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

const (
	adminTokenVariable = "SWITCHYARD_ADMIN_TOKEN"
	// minAdminToken is the minimum length, in characters, of an admin token on addresses beyond loopback.
	minAdminToken = 20
)

// readAdminToken takes the admin token from the variable, else from the file, and returns its source. There may be none.
func (c *Config) readAdminToken(file given, getenv func(string) string) (given, error) {
	if value := getenv(adminTokenVariable); value != "" {
		from := given{named(adminTokenVariable), nil}
		token, err := parseToken(value)
		if err != nil {
			return from, from.fail(err)
		}
		c.AdminToken = token
		return from, nil
	}
	if c.adminTokenFile == "" {
		return given{}, nil
	}
	token, warning, err := ReadTokenFile(c.adminTokenFile, getenv)
	if err != nil {
		return file, file.fail(err)
	}
	c.AdminToken = token
	if warning != "" {
		c.Warnings = append(c.Warnings, warning)
	}
	return file, nil
}

// ReadTokenFile returns the token in the file at path, and a warning when other users can read that file, else "". An
// error names the file.
func ReadTokenFile(path string, getenv func(string) string) (token domain.Secret, warning string, err error) {
	data, info, err := files.ReadInfo(path)
	if err != nil {
		return "", "", err
	}
	if token, err = parseToken(string(data)); err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	if info.Mode().Perm()&0o044 != 0 && !isServiceCredential(path, getenv) {
		warning = fmt.Sprintf("other users can read the token in %s; protect it with chmod 600", path)
	}
	return token, warning, nil
}

// isServiceCredential reports whether the file at path is a systemd credential, which no other user can read whatever
// its mode.
func isServiceCredential(path string, getenv func(string) string) bool {
	dir := getenv("CREDENTIALS_DIRECTORY")
	return dir != "" && filepath.Dir(path) == filepath.Clean(dir)
}

func parseToken(text string) (domain.Secret, error) {
	token := domain.Secret(strings.TrimSpace(text))
	switch {
	case token == "":
		return "", errors.New("holds no token")
	case !token.FitsHeader():
		return "", errors.New("the token must be printable ASCII without spaces, since it is sent in a header")
	}
	return token, nil
}
