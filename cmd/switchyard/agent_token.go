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

// joinToken says where an agent gets its join token.
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

// given reports whether nobody has to be asked.
func (j joinToken) given() bool {
	return j.flag != "" || j.file != "" || os.Getenv("SWITCHYARD_TOKEN") != ""
}

// get returns the token of the flag, else of the file, else of the environment, else of whoever is at the terminal. The file
// is read only then, since an agent that has joined needs none.
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

// askForToken reads a join token from in, one line.
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
			return "", errors.New("a join token is needed: --token-file, SWITCHYARD_TOKEN, or an answer here; get one from the gateway's Agents page")
		}
		return domain.Secret(text), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
