package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/config"
	"switchyard/internal/store/sqlite"
)

func backupCommand() *cobra.Command {
	cmd := &cobra.Command{
		ValidArgsFunction: completeFiles,

		Use:   "backup FILE",
		Short: "Copy the gateway's database to a new file, even while the gateway is running",
		Long: "Copy the gateway's database to a new file, even while the gateway is running. To restore a copy, stop\n" +
			"the gateway, replace " + sqlite.FileName +
			" in the data directory with the copy, and remove the files beside it that end in\n" +
			"-wal and -shm. To back up a PostgreSQL database, use pg_dump.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := config.LoadSome(cmd.Flags(), os.Getenv, "gateway.data", "gateway.database")
			if err != nil {
				return asUsage(err)
			}
			if c.Database != "" || strings.Contains(args[0], "://") {
				return errors.New("backup only copies the database in the data directory; to back up PostgreSQL, use pg_dump")
			}
			target, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if err := sqlite.Backup(cmd.Context(), c.Data, target); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is copied to %s\n", filepath.Join(c.Data, sqlite.FileName), target)
			return err
		},
	}
	config.AddFlags(cmd.Flags(), "data", "database")
	return cmd
}
