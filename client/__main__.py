from client.main import main

main()
