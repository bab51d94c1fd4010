package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/domain"
)

// joinToken holds the flags that an agent's join token can come from.
type joinToken struct {
	flag string // the token itself
	file string // a file that holds it
}

func (j joinToken) check() error {
	if j.flag != "" && j.file != "" {
		return usagef("--token and --token-file: only one of them can be given")
	}
	return nil
}

// given reports whether there is a token without prompting for one.
func (j joinToken) given() bool {
	return j.flag != "" || j.file != "" || os.Getenv("SWITCHYARD_TOKEN") != ""
}

// get returns the token from the flag, else the file, else the environment, else a prompt. It reads the file each time
// it is called, since an agent that has joined needs none.
func (j joinToken) get(ctx context.Context, cmd *cobra.Command, log *slog.Logger) (domain.Secret, error) {
	if j.file == "" {
		if token := cmp.Or(j.flag, os.Getenv("SWITCHYARD_TOKEN")); token != "" {
			return domain.Secret(token), nil
		}
		return askForToken(ctx, cmd.InOrStdin(), cmd.ErrOrStderr())
	}
	token, warning, err := config.ReadTokenFile(j.file, os.Getenv)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	if warning != "" {
		log.Warn(warning)
	}
	return token, nil
}

// askForToken prompts for a join token and reads it from in, one line.
func askForToken(ctx context.Context, in io.Reader, out io.Writer) (domain.Secret, error) {
	fmt.Fprint(out, "Join token: ")
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n')
		line <- strings.TrimSpace(text)
	}()
	select {
	case text := <-line:
		if text == "" {
			return "", errors.New("a join token is required: create one on the gateway's Agents page, and enter it here or " +
				"pass it with --token-file or SWITCHYARD_TOKEN")
		}
		return domain.Secret(text), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
