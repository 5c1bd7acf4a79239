# A stand-in for Homebrew: installs a formula's archive for one platform into a prefix, and prints what the formula says.
#
# usage: ruby homebrew.rb FORMULA SYSTEM PROCESSOR TREE PREFIX
#
# TREE is the unpacked archive; without it, only the address and the sum for the platform are printed.
require "fileutils"
require "pathname"

class Formula
  class << self
    attr_reader :values, :test_block
    attr_accessor :platform

    def set(name, value) = (@values ||= {})[name] = value
    %w[desc homepage version license url sha256].each { |name| define_method(name) { |value| set(name, value) } }
    %w[macos linux arm intel].each { |name| define_method("on_#{name}") { |&block| block.call if platform.include?(name) } }
    def test(&block) = @test_block = block
  end

  # A directory below the prefix.
  class Directory < Pathname
    def install(*files)
      mkpath
      raise "nothing to install in #{self}" if files.flatten.empty?
      files.flatten.each { |file| FileUtils.cp_r(file, self) }
    end
  end

  def initialize(prefix) = @prefix = prefix
  def bin = Directory.new("#{@prefix}/bin")
  def man1 = Directory.new("#{@prefix}/share/man/man1")
  def doc = Directory.new("#{@prefix}/share/doc/jobc")
  def pkgshare = Directory.new("#{@prefix}/share/jobc")
  def testpath = Pathname.new(Dir.pwd)

  # Homebrew gives the file of a shell the name that the shell looks for.
  def bash_completion = Directory.new("#{@prefix}/etc/bash_completion.d")
  def zsh_completion = Directory.new("#{@prefix}/share/zsh/site-functions")
  def fish_completion = Directory.new("#{@prefix}/share/fish/vendor_completions.d")

  def system(*command)
    raise "failed: #{command.join(" ")}" unless Kernel.system(*command.map(&:to_s))
  end
end

formula, system, processor, tree, prefix = ARGV
Object.const_set(:Jobc, Class.new(Formula))
Jobc.platform = [system, processor]
load File.expand_path(formula)
puts Jobc.values.slice("version", "homepage", "url", "sha256").values
exit unless tree
installed = Jobc.new(File.expand_path(prefix))
Dir.chdir(tree) { installed.install }
require "tmpdir"
Dir.mktmpdir { |directory| Dir.chdir(directory) { installed.instance_eval(&Jobc.test_block) } }
