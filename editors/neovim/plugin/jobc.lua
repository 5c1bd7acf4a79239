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
    client = vim.lsp.start_client({ name = "jobc", cmd = { "jobc", "lsp" }, init_options = { whyLens = true }, root_dir = vim.fn.getcwd() })
  end
  if client then
    vim.lsp.buf_attach_client(buffer, client)
    vim.bo[buffer].omnifunc = "v:lua.vim.lsp.omnifunc"
  end
end

-- The lines of built files that a line of the job causes, as a list to step through; they are in no file on disk.
local function why(uri, line)
  local buffer = uri and vim.uri_to_bufnr(uri) or vim.api.nvim_get_current_buf()
  local params = { uri = vim.uri_from_bufnr(buffer), line = line or (vim.fn.line(".") - 1) }
  vim.lsp.buf_request(buffer, "jobc/why", params, function(failure, result)
    if failure or not result or #result.lines == 0 then
      vim.notify(failure and failure.message or "jobc: nothing is recorded for this line", vim.log.levels.INFO)
      return
    end
    local items = vim.tbl_map(function(it)
      return { text = ("%s/%s/%s:%d: %s"):format(it.job, it.target, it.path, it.line + 1, it.text), bufnr = buffer, lnum = params.line + 1 }
    end, result.lines)
    vim.fn.setqflist({}, " ", { title = "jobc why", items = items })
    vim.cmd("copen")
  end)
end

vim.api.nvim_create_user_command("JobcWhy", function()
  why()
end, { desc = "List what this line of the job causes" })
vim.lsp.commands["jobc.why"] = function(command)
  why(command.arguments[1], command.arguments[2])
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
