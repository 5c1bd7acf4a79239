-- Starts `jobc lsp` for the files of jobc; Neovim 0.7 or newer. `packaging/stage` installs it as the optional package `jobc`.

if vim.g.loaded_jobc then
  return
end
vim.g.loaded_jobc = true

local client

local function attach(buffer)
  if vim.fn.executable("jobc") == 0 then
    vim.notify_once("jobc: the program `jobc` was not found; install it, or add its directory to PATH", vim.log.levels.WARN)
    return
  end
  -- A server that has ended is started again.
  if not client or vim.lsp.client_is_stopped(client) then
    client = vim.lsp.start_client({ name = "jobc", cmd = { "jobc", "lsp" }, root_dir = vim.fn.getcwd() })
  end
  if client then
    vim.lsp.buf_attach_client(buffer, client)
    vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  end
end

vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
  group = vim.api.nvim_create_augroup("jobc", {}),
  pattern = {
    "job.yaml", "job.yml", "job.json", "jobc.yaml", "jobc.yml",
    "*.job.yaml", "*.job.yml", "*.job.json", "targets.yaml", "targets.yml",
  },
  callback = function(event)
    attach(event.buf)
  end,
})
