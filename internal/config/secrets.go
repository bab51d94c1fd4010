package config

import (
	"errors"
	"fmt"
	"io/fs"
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

// readSecret takes a secret from the variable, which is then the source of the key, or else from the file at path,
// which the key names. There may be none.
func (c *Config) readSecret(
	variable, path, key string, last map[string]input, getenv func(string) string,
) (secret domain.Secret, err error) {
	if value := getenv(variable); value != "" {
		last[key] = input{variable, nil}
		secret, err = parseToken(value)
	} else if path != "" {
		var warnings []string
		secret, warnings, err = ReadTokenFile(path, getenv)
		c.Warnings = append(c.Warnings, warnings...)
	}
	if err != nil {
		err = last[key].fail(err)
	}
	return secret, err
}

// ReadTokenFile returns the token in the file at path, and a warning when other users can read that file. An error
// names the file.
func ReadTokenFile(path string, getenv func(string) string) (token domain.Secret, warnings []string, err error) {
	data, info, err := files.ReadInfo(path, files.Small)
	if err != nil {
		return "", nil, err
	}
	if token, err = parseToken(string(data)); err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return token, readableByOthers("token", path, info, getenv), nil
}

// readableByOthers returns a warning if other users can read the file of a secret.
func readableByOthers(what, path string, info fs.FileInfo, getenv func(string) string) []string {
	if !files.OthersMay(info, 0o4) || isServiceCredential(path, getenv) {
		return nil
	}
	return []string{fmt.Sprintf("other users can read the %s in %s; protect it with chmod 600", what, path)}
}

const mailPasswordVariable = "SWITCHYARD_NOTIFICATIONS_SMTP_PASSWORD"

// readMail reads the password for the mail server, from the variable or the first line of its file, and checks the
// settings that depend on each other.
func (c *Config) readMail(last map[string]input, getenv func(string) string) error {
	n := &c.Notifications
	if host := last["notifications.smtp_host"]; n.SMTPHost != "" && n.SMTPFrom == "" {
		return host.fail(errors.New("needs notifications.smtp_from, the sender's address"))
	}
	n.SMTPPassword = domain.Secret(getenv(mailPasswordVariable))
	if n.smtpPasswordFile == "" || n.SMTPPassword != "" {
		return nil
	}
	from := last["notifications.smtp_password_file"]
	data, info, err := files.ReadInfo(n.smtpPasswordFile, files.Small)
	if err != nil {
		return from.fail(err)
	}
	line, _, _ := strings.Cut(string(data), "\n")
	if n.SMTPPassword = domain.Secret(strings.TrimRight(line, "\r")); n.SMTPPassword == "" {
		return from.fail(fmt.Errorf("%s: holds no password", n.smtpPasswordFile))
	}
	c.Warnings = append(c.Warnings, readableByOthers("password", n.smtpPasswordFile, info, getenv)...)
	return nil
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

// readLogin reads the client secret and checks the login settings that depend on each other.
func (c *Config) readLogin(last map[string]input, getenv func(string) string) (err error) {
	l := &c.Login
	if issuer := last["login.issuer"]; l.Issuer != "" && l.ClientID == "" {
		return issuer.fail(errors.New("needs login.client_id, the name under which the provider knows this gateway"))
	}
	const file = "login.client_secret_file"
	if l.ClientSecret, err = c.readSecret(loginSecretVariable, l.clientSecretFile, file, last, getenv); err != nil {
		return err
	}
	if user, ok := last["login.user_header"]; ok && !l.HasProxyLogin() {
		c.Warnings = append(c.Warnings, user.fail(errors.New("has no effect without login.trusted_proxies")).Error())
	}
	if groups, ok := last["login.groups_header"]; ok && l.UserHeader == "" {
		c.Warnings = append(c.Warnings, groups.fail(errors.New("has no effect without login.user_header")).Error())
	}
	if l.IsSetUp() && l.Roles.Empty() {
		c.Warnings = append(c.Warnings, "nobody can log in except with a token: login.viewers, login.operators and "+
			"login.admins are empty")
	}
	return nil
}
