package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

func mcpCommand() *cobra.Command {
	var gateway string
	cmd := &cobra.Command{
		Use:   "mcp [--gateway URL]",
		Short: "Connect an MCP client that uses stdin and stdout to a gateway",
		Long: "Connect an MCP client that uses stdin and stdout to a gateway's /mcp. SWITCHYARD_API_TOKEN is the token\n" +
			"for a gateway that requires one. In an agent's command, it and SWITCHYARD_MCP_URL, the gateway's\n" +
			"address, are already set.",
		Example: "  SWITCHYARD_API_TOKEN=… switchyard mcp --gateway http://yard:3000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url := os.Getenv("SWITCHYARD_MCP_URL"); url != "" && !cmd.Flags().Changed("gateway") {
				gateway = strings.TrimSuffix(url, "/mcp")
			}
			address, err := gatewayAddress(gateway)
			if err != nil {
				return err
			}
			token := domain.Secret(os.Getenv("SWITCHYARD_API_TOKEN"))
			if !token.FitsHeader() {
				return usagef("SWITCHYARD_API_TOKEN must be ASCII characters without spaces")
			}
			pipe := newMCPPipe(address, token, cmd.OutOrStdout())
			return supervise.UnlessEnded(cmd.Context(), pipe.run(cmd.Context(), cmd.InOrStdin()))
		},
	}
	cmd.Flags().StringVar(&gateway, "gateway", "http://localhost:3000",
		"connect to the gateway at `URL` [$SWITCHYARD_MCP_URL]")
	return cmd
}
