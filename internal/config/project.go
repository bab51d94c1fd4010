package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"switchyard/internal/domain"
)

// Project is the configuration of a project server, which has no configuration file.
type Project struct {
	Name        string
	Work        string // absolute path of the work directory
	Layout      string // of the board, "" for the first that is found
	Listen      string // HOST:PORT
	AllowHosts  []string
	AllowWrites bool // stories can be changed
	Git
	Token    domain.Secret // required of callers, "" for none
	Warnings []string      // problems that do not prevent a start, one line each
}

const projectToken = "SWITCHYARD_PROJECT_TOKEN"

// Git says what is done in the repository that a board is in.
type Git struct {
	NoWorktrees bool
	CommitMoves bool
	AllowMerges bool
	MergeCheck  string // "" for none
}

func (g *Git) AddFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&g.NoWorktrees, "no-worktrees", false,
		"read the board in DIR alone, without the repository's other work trees")
	flags.BoolVar(&g.CommitMoves, "commit-moves", false,
		"make each change of a story that git tracks a commit of its file alone")
	flags.BoolVar(&g.AllowMerges, "allow-merges", false, "allow callers to merge branches into the one of DIR")
	flags.StringVar(&g.MergeCheck, "merge-check", "", "run `CMD` on each merge, which it refuses by failing")
}

func AddProjectFlags(flags *pflag.FlagSet) {
	flags.String("name", "", "call the project `N`")
	flags.String("work", "", "watch the stages below `DIR`")
	flags.String("listen", "127.0.0.1:3001", "serve on `ADDR` (HOST:PORT)")
	flags.String("token", "", "require the bearer token `T`; other users of this machine can see it in the process list "+
		"[$"+projectToken+"]")
	flags.String("token-file", "", "require the bearer token in `FILE`")
	flags.Bool("allow-writes", false, "allow callers to create, move and block stories")
	flags.Bool("allow-unauthenticated", false, "serve other machines without requiring a token")
	flags.StringArray("allow-host", nil, "also answer to the host name `H`; may be repeated")
}

// ProjectToken returns the token from the environment, "" for none. An error is one line that names the variable.
func ProjectToken(getenv func(string) string) (domain.Secret, error) {
	return token(input{projectToken, []string{strings.TrimSpace(getenv(projectToken))}})
}

func token(g input) (domain.Secret, error) {
	secret := domain.Secret(g.values[0])
	if !secret.FitsHeader() {
		return "", g.fail(errors.New("must be ASCII without spaces, since it is sent in a header"))
	}
	return secret, nil
}

// LoadProject reads the configuration from flags (to which AddProjectFlags was applied) and the environment. An error
// is one line that names the flag (it is a FlagError then) or the variable.
func LoadProject(flags *pflag.FlagSet, getenv func(string) string) (*Project, error) {
	c := &Project{Name: strings.TrimSpace(flags.Lookup("name").Value.String())}
	if err := domain.CheckProjectName(c.Name); err != nil {
		return nil, FlagError{fmt.Errorf("--%w", err)} // the error begins with "name: "
	}
	for _, s := range []setting{
		{flag: "work", setter: one(&c.Work, parsePath)},
		{flag: "listen", setter: one(&c.Listen, parseAddress)},
		{flag: "allow-host", setter: each(&c.AllowHosts, parseHost)},
		{flag: "allow-writes", setter: on(&c.AllowWrites)},
	} {
		g := fromFlag(flags, s.flag)
		if err := s.set(g.values); err != nil {
			return nil, g.fail(err)
		}
	}
	if err := c.readToken(flags, getenv); err != nil {
		return nil, err
	}
	open, _ := flags.GetBool("allow-unauthenticated") // it fails only for an unknown flag
	if c.Token == "" && !open && !onLoopback(c.Listen) {
		return nil, FlagError{fmt.Errorf("--listen: %s can be reached from other machines; set --token-file or "+
			"--allow-unauthenticated", c.Listen)}
	}
	return c, nil
}

// readToken takes the token from the flag or the file, else from the variable.
func (c *Project) readToken(flags *pflag.FlagSet, getenv func(string) string) (err error) {
	inFlag, inFile := fromFlag(flags, "token"), fromFlag(flags, "token-file")
	switch {
	case flags.Changed("token") && flags.Changed("token-file"):
		return FlagError{errors.New("--token and --token-file: only one of them can be given")}
	case flags.Changed("token-file"):
		path, err := parsePath(inFile.values[0])
		if err != nil {
			return inFile.fail(err)
		}
		if c.Token, c.Warnings, err = ReadTokenFile(path, getenv); err != nil {
			return fmt.Errorf("--token-file: %w", err)
		}
		return nil
	case !flags.Changed("token"):
		c.Token, err = ProjectToken(getenv)
		return err
	case inFlag.values[0] == "":
		return inFlag.fail(errEmpty)
	}
	c.Token, err = token(inFlag)
	return err
}
