package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
	"switchyard/internal/store/transfer"
)

func migrateCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "migrate --to URL",
		Short: "Move the gateway's database to PostgreSQL, to run several gateways",
		Long: "Move the gateway's database, all of it or nothing, into an empty PostgreSQL database. The gateway must\n" +
			"not be running. Afterwards start any number of gateways with --database URL; the data directory is\n" +
			"marked as moved, and no gateway starts on it. To keep the password out of the process list, put it into\n" +
			"$PGPASSWORD.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.LoadSome(cmd.Flags(), os.Getenv, "gateway.data")
			if err != nil {
				return err
			}
			dir := c.Data
			if _, err = config.ParseDatabase(to); err == nil {
				err = postgres.CheckAddress(to)
			}
			if err != nil {
				return usagef("--to: %v", err)
			}
			path := filepath.Join(dir, sqlite.FileName)
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("there is no database %s to move", path)
			}
			unlock, err := openDataDir(dir)
			if err != nil {
				return err
			}
			defer unlock()
			key, err := sessionKey(dir)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			err = transfer.Run(cmd.Context(), dir, to, key,
				func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) })
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(out, "%s has been moved to %s; start the gateway with that as --database\n", path,
				postgres.Address(to))
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "move to the PostgreSQL database at `URL` (postgres://…)")
	config.AddFlags(cmd.Flags(), "data")
	return cmd
}
