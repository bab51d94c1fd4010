package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/internal/domain"
)

// Project is the configuration of a project server. It has no file.
type Project struct {
	Name        string
	Work        string // absolute path of the work directory
	Listen      string // HOST:PORT
	AllowHosts  []string
	AllowWrites bool          // stories can be changed
	Token       domain.Secret // what callers must have, "" for none
	Warnings    []string      // what does not stop a start but should be put right
}

const projectToken = "SWITCHYARD_PROJECT_TOKEN"

// AddProjectFlags adds the project server's flags to flags.
func AddProjectFlags(flags *pflag.FlagSet) {
	flags.String("name", "", "call the project `N`")
	flags.String("work", "", "watch the stages below `DIR`")
	flags.String("listen", "127.0.0.1:3001", "serve on `ADDR` (HOST:PORT)")
	flags.String("token", "", "require Authorization: Bearer `T` of callers; every user of this machine can see it then [$"+projectToken+"]")
	flags.String("token-file", "", "require the token in `FILE` of callers")
	flags.Bool("allow-writes", false, "let callers move, block and create stories")
	flags.Bool("allow-unauthenticated", false, "serve beyond this machine without a token")
	flags.StringArray("allow-host", nil, "also answer to the host name `H`; may be repeated")
}

// ProjectToken is the token of the environment, "" for none. An error is one line that names the variable.
func ProjectToken(getenv func(string) string) (domain.Secret, error) {
	return token(given{named(projectToken), []string{strings.TrimSpace(getenv(projectToken))}})
}

func token(g given) (domain.Secret, error) {
	secret := domain.Secret(g.values[0])
	if !secret.FitsHeader() {
		return "", g.fail(errors.New("must be ASCII characters without spaces: a header carries it"))
	}
	return secret, nil
}

// LoadProject reads the configuration of flags (AddProjectFlags was applied to them) and the environment.
// An error is one line that names the flag (and is a FlagError then) or the variable.
func LoadProject(flags *pflag.FlagSet, getenv func(string) string) (*Project, error) {
	text := func(flag string) string { return flags.Lookup(flag).Value.String() }
	c := &Project{Name: strings.TrimSpace(text("name"))}
	if err := domain.CheckProjectName(c.Name); err != nil {
		return nil, FlagError{fmt.Errorf("--%w", err)} // the error begins with "name: "
	}
	if err := isPath(&c.Work)([]string{text("work")}); err != nil {
		return nil, FlagError{fmt.Errorf("--work: %w", err)}
	}
	if err := isAddress(&c.Listen)([]string{text("listen")}); err != nil {
		return nil, FlagError{fmt.Errorf("--listen: %w", err)}
	}
	if hosts, _ := flags.GetStringArray("allow-host"); len(hosts) > 0 { // its error is that there is no such flag
		if err := isHosts(&c.AllowHosts)(hosts); err != nil {
			return nil, FlagError{fmt.Errorf("--allow-host: %w", err)}
		}
	}
	c.AllowWrites, _ = flags.GetBool("allow-writes") // as above
	if err := c.readToken(flags, getenv); err != nil {
		return nil, err
	}
	if open, _ := flags.GetBool("allow-unauthenticated"); c.Token == "" && !open && !onLoopback(c.Listen) {
		return nil, FlagError{fmt.Errorf("--listen: %s is not only on loopback; set --token-file or --allow-unauthenticated", c.Listen)}
	}
	return c, nil
}

// readToken sets the token to that of the flag or the file, else of the variable.
func (c *Project) readToken(flags *pflag.FlagSet, getenv func(string) string) (err error) {
	value := func(flag string) given { return given{named("--" + flag), []string{flags.Lookup(flag).Value.String()}} }
	switch inFlag, inFile := flags.Changed("token"), flags.Changed("token-file"); {
	case inFlag && inFile:
		return FlagError{errors.New("--token and --token-file: only one of them can be given")}
	case inFile:
		var path, warning string
		from := value("token-file")
		if err := isPath(&path)(from.values); err != nil {
			return from.fail(err)
		}
		if c.Token, warning, err = ReadTokenFile(path, getenv); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		if warning != "" {
			c.Warnings = append(c.Warnings, warning)
		}
		return nil
	case !inFlag:
		c.Token, err = ProjectToken(getenv)
		return err
	case value("token").values[0] == "":
		return value("token").fail(errEmpty)
	}
	c.Token, err = token(value("token"))
	return err
}
