fn main() -> std::process::ExitCode {
    blotter::cli::run()
}
