// app.css, the style sheet of every page, has what the first page needs. Utilities that only other pages use are in pages.css.
const config = require('../../tailwind.config.js')

module.exports = {
  ...config,
  content: {
    ...config.content,
    files: [...config.content.files, '!./views/{access,agents,audit,board,bot,changes,changes_*,events,gateways,join,login,mcp_clients,list,project,projects,review,sign_in,story,story_*}.templ', '!./static/bot-config.js'],
  },
}
